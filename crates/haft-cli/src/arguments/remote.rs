//! Which server a command talks to.

use std::path::PathBuf;

use clap::Args;

/// The server that is meant, and the key for it.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct RemoteArguments {
    /// The server's address, such as `http://127.0.0.1:4141`; `HAFT_SERVER` says the same
    ///
    /// Without either it is the server that this folder's `haft.toml` describes. Its key comes from
    /// `HAFT_API_KEY`, or from a file.
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The file that holds the key, in place of `HAFT_API_KEY`
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// The configuration that says where the server is; `haft.toml` of this folder if not said
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

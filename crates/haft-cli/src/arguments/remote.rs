//! Which server a command talks to.

use std::path::PathBuf;

use clap::Args;
use haft::models::Lookup;

/// The server that is meant, and the key for it.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct RemoteArguments {
    /// The server's address, such as `http://127.0.0.1:4141`; `HAFT_SERVER` says the same, else it is
    /// the server that `haft.toml` describes
    #[arg(long, alias = "url", value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The file that holds the server's key, in place of `HAFT_API_KEY`
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// The configuration, in place of this folder's `haft.toml`
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// The variable that says where the server is.
pub(crate) const SERVER: &str = "HAFT_SERVER";

impl RemoteArguments {
    /// Whether somebody named a server.
    pub(crate) fn is_named(&self, lookup: Lookup<'_>) -> bool {
        let is_said = |it: String| !it.trim().is_empty();
        self.server.is_some() || lookup(SERVER).is_some_and(is_said)
    }
}

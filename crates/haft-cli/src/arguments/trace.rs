//! `haft trace`: what its command line may say.

use clap::Args;

use super::RemoteArguments;

#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    /// Which response, as `haft responses list` names it
    #[arg(value_name = "RESPONSE_ID")]
    pub(crate) id: String,
    /// Print JSON: the record as the server keeps it
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

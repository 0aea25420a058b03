//! `haft responses`: what its command line may say.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::RemoteArguments;
use super::value::{at_least_one, time};

#[derive(Debug, Subcommand)]
pub(crate) enum ResponsesCommand {
    /// List them, the newest first
    List(ListArguments),
    /// Show one: how it went, what was said and what was called
    Show(ShowArguments),
    /// Wait until one that runs in the background has ended, then show it
    Wait(WaitArguments),
    /// Delete them for good
    Delete(DeleteArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// How many
    #[arg(long, value_name = "N", default_value = "20", value_parser = at_least_one)]
    pub(crate) limit: NonZeroU32,
    /// All of them
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
    /// Print JSON: a list of responses without their items
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// Which, as `haft responses list` names it
    pub(crate) id: String,
    /// Also what it answered to, and every text in full
    #[arg(long)]
    pub(crate) items: bool,
    /// Print JSON: the response, and with `--items` its `input_items`
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct WaitArguments {
    /// Which, as `haft responses list` names it
    pub(crate) id: String,
    /// How long to wait at most, such as `90s` or `10m`
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) timeout: Option<Duration>,
    /// Print JSON: the response
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArguments {
    /// Which, as `haft responses list` names them
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print JSON: what became of each
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

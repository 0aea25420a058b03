//! `haft tools`: what its command line may say.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List them
    List(ListToolsArguments),
    /// Show one: what it does, what it takes, and what is said about it
    Show(ShowToolArguments),
    /// Call one here, by the same checks as a call of a model
    #[command(after_help = "\
Examples:
  haft tools call clock
  haft tools call calculate expression='0.1 + 0.2'
  haft tools call search_files '{\"query\": \"retry limit\", \"limit\": 3}'
  echo '{\"expression\": \"2^64\"}' | haft tools call calculate - --json

Ends with 0 if the call succeeded, with 1 if it failed or was not allowed, with 2 if there is no such \
tool or its arguments are wrong. `search_files` is there once `[search_files]` lists folders, and \
searches all of them here, as the operator, whichever tenants they are for.")]
    Call(CallToolArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ListToolsArguments {
    /// Print JSON: a list of definitions
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: FromConfiguration,
}

#[derive(Debug, Args)]
pub(crate) struct ShowToolArguments {
    /// Which, as `haft tools list` names it
    pub(crate) name: String,
    /// Print JSON: the definition
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: FromConfiguration,
}

#[derive(Debug, Args)]
pub(crate) struct CallToolArguments {
    /// Which, as `haft tools list` names it
    pub(crate) name: String,
    /// The arguments: one JSON object, `-` for standard input, or `KEY=VALUE` for each
    #[arg(value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<String>,
    /// Print JSON: what became of the call
    #[arg(long)]
    pub(crate) json: bool,
    /// Let the call run if it would be asked about
    #[arg(long, short)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) from: FromConfiguration,
}

/// The configuration that says which tools there are.
#[derive(Debug, Args)]
pub(crate) struct FromConfiguration {
    /// The configuration; `haft.toml` of this folder, if it is there, where none is named
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

//! `haft tools`: what its command line may say.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ScriptArguments;

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
    /// Find some: what a model that searches would find, with scores and reasons
    #[command(after_help = "\
Examples:
  haft tools search 'create an issue'
  haft tools search 'read a mail' 'book a flight' --limit 3
  haft tools search weather --file tools.json --json

Several queries are searched one by one and dealt out in turn. Ends with 1 if nothing fits.")]
    Search(SearchToolsArguments),
    /// Count the tokens that they cost in every request, and what holding them back saves
    #[command(after_help = "\
Examples:
  haft tools cost
  haft tools cost --file github.json --file playwright.json --loaded 20
  haft tools cost --query 'create an issue' --query 'open a page'

Tokens are those of o200k_base; other models count a little differently.")]
    Cost(ToolCostArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SearchToolsArguments {
    /// What the tool should do; one query for each step
    #[arg(required = true, value_name = "QUERY")]
    pub(crate) queries: Vec<String>,
    /// How many tools to find at most
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 8,
        value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) limit: u16,
    /// Print JSON: the answer as programs get it
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) which: WhichTools,
}

#[derive(Debug, Args)]
pub(crate) struct ToolCostArguments {
    /// How many tools a conversation loads
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub(crate) loaded: usize,
    /// What is searched for; may be repeated. Tools of average size are loaded where nothing is said
    #[arg(long = "query", value_name = "QUERY")]
    pub(crate) queries: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) which: WhichTools,
}

/// Which tools to look at.
#[derive(Debug, Args)]
pub(crate) struct WhichTools {
    /// Definitions in a file, as MCP servers and providers write them, in place of the configuration's; may be repeated
    #[arg(long = "file", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) from: FromConfiguration,
    #[command(flatten)]
    pub(crate) scripts: ScriptArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ListToolsArguments {
    /// Print JSON: a list of definitions
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: FromConfiguration,
    #[command(flatten)]
    pub(crate) scripts: ScriptArguments,
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
    #[command(flatten)]
    pub(crate) scripts: ScriptArguments,
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
    #[command(flatten)]
    pub(crate) scripts: ScriptArguments,
}

/// The configuration that says which tools there are.
#[derive(Debug, Args)]
pub(crate) struct FromConfiguration {
    /// The configuration; `haft.toml` of this folder, if it is there, where none is named
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

//! The arguments of `haft mcp import|add|remove|install|cost`.

use clap::Args;

use super::McpFrom;
use crate::mcp::Client;

/// The examples of `haft mcp import`.
pub(super) const IMPORT_HELP: &str = "\
Examples:
  haft mcp import claude                  the servers of Claude Code, of the user and of this folder
  haft mcp import codex --dry-run         show what would be written
  haft mcp import ~/other/mcp.json        a file in the form of any of these clients

Tables are added to the file of `--config`, else to `haft.toml` of this folder, else to the user's own. Servers that \
it has already are left alone. Literal secrets become references such as `${GITHUB_TOKEN}`: the command lists the \
variables to set.";

/// The examples of `haft mcp add`.
pub(super) const ADD_HELP: &str = "\
Examples:
  haft mcp add files -- npx -y @modelcontextprotocol/server-filesystem /srv/docs
  haft mcp add tracker https://mcp.example.com/mcp --bearer-env TRACKER_TOKEN
  haft mcp add hub --env 'TOKEN=${HUB_TOKEN}' -- hub-mcp --stdio";

/// The examples of `haft mcp install`.
pub(super) const INSTALL_HELP: &str = "\
Examples:
  haft mcp install claude                 add haft to the user's settings of Claude Code
  haft mcp install cursor --project       add it to this folder's settings
  haft mcp install codex --print          print the setting, change nothing
  haft mcp install vscode --http http://127.0.0.1:4141/mcp --bearer-env HAFT_API_KEY
  haft mcp install claude --remove        undo it

Comments and everything else in the client's file stay as they are.";

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct McpImportArguments {
    /// The client: `claude`, `claude-desktop`, `codex`, `cursor`, `vscode`, `windsurf`, `gemini`, or a file
    #[arg(value_name = "CLIENT|FILE")]
    pub(crate) source: String,
    /// Print the tables, write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Replace servers that the configuration has already
    #[arg(long)]
    pub(crate) replace: bool,
    /// Copy literal secrets too, and make the file readable for its owner only
    #[arg(long)]
    pub(crate) copy_secrets: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: McpFrom,
}

#[derive(Debug, Args)]
pub(crate) struct McpAddArguments {
    /// The name of the server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The address of a server that is reached over HTTP
    #[arg(
        value_name = "URL",
        required_unless_present = "command",
        conflicts_with = "command"
    )]
    pub(crate) url: Option<String>,
    /// The program of a server that haft starts, and its arguments
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<String>,
    /// Set a variable of the program; `${NAME}` in the value stands for a variable of haft
    #[arg(long, value_name = "KEY=VALUE", requires = "command")]
    pub(crate) env: Vec<String>,
    /// Send a header with every request
    #[arg(long, value_name = "NAME: VALUE", requires = "url")]
    pub(crate) header: Vec<String>,
    /// Send the bearer token that this variable holds
    #[arg(long, value_name = "VARIABLE", requires = "url")]
    pub(crate) bearer_env: Option<String>,
    /// Say what the server is for
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Replace a server of this name
    #[arg(long)]
    pub(crate) replace: bool,
    /// Write literal secrets into the file, and make it readable for its owner only
    #[arg(long)]
    pub(crate) copy_secrets: bool,
    #[command(flatten)]
    pub(crate) from: McpFrom,
}

#[derive(Debug, Args)]
pub(crate) struct McpRemoveArguments {
    /// The name of the server, as `haft mcp list` shows it
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) from: McpFrom,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct McpInstallArguments {
    /// The client to add haft to
    #[arg(value_enum, value_name = "CLIENT")]
    pub(crate) client: Client,
    /// Print the setting, change nothing
    #[arg(long)]
    pub(crate) print: bool,
    /// Change the settings of this folder's project, not those of the user
    #[arg(long)]
    pub(crate) project: bool,
    /// Let the client reach `haft serve --mcp` at this address, not start haft itself
    #[arg(long, value_name = "URL")]
    pub(crate) http: Option<String>,
    /// Let the client send the key that this variable holds
    #[arg(long, value_name = "VARIABLE", requires = "http")]
    pub(crate) bearer_env: Option<String>,
    /// Remove the servers from the client's file that haft has, so that none is offered twice; a copy is kept
    #[arg(long, conflicts_with = "remove")]
    pub(crate) replace_servers: bool,
    /// Remove haft from the client's file
    #[arg(long, conflicts_with = "print")]
    pub(crate) remove: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: McpFrom,
}

#[derive(Debug, Args)]
pub(crate) struct McpCostArguments {
    /// Count for this model's context window [default: 200000 tokens]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: McpFrom,
}

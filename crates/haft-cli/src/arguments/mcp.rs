//! The arguments of `haft mcp`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::mcp_setup::{
    ADD_HELP, IMPORT_HELP, INSTALL_HELP, McpAddArguments, McpCostArguments, McpImportArguments,
    McpInstallArguments, McpRemoveArguments,
};
use super::{RemoteArguments, ScriptArguments};
use crate::config::GatewayMode;

/// The examples of `haft mcp`.
pub(super) const MCP_HELP: &str = "\
Examples:
  haft mcp import claude                  take the servers of Claude Code over
  haft mcp add files -- npx -y @modelcontextprotocol/server-filesystem /srv/docs
  haft mcp test                           check that each server works
  haft mcp call files read_file path=README.md
  haft mcp status                         state, calls and errors of each server
  haft mcp calls --errors                 the last calls that did not succeed
  haft mcp login search                   log in to a server that asks for it
  haft mcp cost                           count the tokens of all tool definitions
  haft mcp install claude                 put haft in front of them in Claude Code

Servers are described in `[mcp.NAME]` of `haft.toml`, or in files of other clients that `mcp_servers` of `[server]` \
names. Without `--config`, `haft.toml` of this folder is read, else the user's: `~/.config/haft/haft.toml`.";

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Import the servers of another client into `haft.toml`
    #[command(after_help = IMPORT_HELP)]
    Import(McpImportArguments),
    /// Add a server to `haft.toml`
    #[command(
        override_usage = "haft mcp add [OPTIONS] NAME URL\n       haft mcp add [OPTIONS] NAME -- COMMAND...",
        after_help = ADD_HELP
    )]
    Add(McpAddArguments),
    /// Remove a server from `haft.toml`
    Remove(McpRemoveArguments),
    /// Add haft to the servers of another client
    #[command(after_help = INSTALL_HELP)]
    Install(McpInstallArguments),
    /// List the configured servers and what is known of each, without starting any
    List(McpListArguments),
    /// Connect to servers and report era, version, tools and errors
    #[command(after_help = "\
Examples:
  haft mcp test                           all servers of the configuration, at the same time
  haft mcp test files search --json
  haft mcp test --url https://mcp.example.com/mcp --bearer-env EXAMPLE_TOKEN

Exits with 0 if all of them work, with 1 otherwise.")]
    Test(McpTestArguments),
    /// Show the tools of a server, and which of them are held back
    #[command(override_usage = "haft mcp tools [OPTIONS] NAME\n       \
                                haft mcp tools [OPTIONS] --command COMMAND|--url URL")]
    Tools(McpToolsArguments),
    /// Call a tool of a server, with the same checks as a call of a model
    #[command(
        override_usage = "haft mcp call [OPTIONS] NAME TOOL [ARGUMENTS]...\n       \
                          haft mcp call [OPTIONS] --command COMMAND|--url URL TOOL [ARGUMENTS]...",
        after_help = "\
Examples:
  haft mcp call files read_file path=README.md
  haft mcp call files search '{\"query\": \"retry\", \"limit\": 3}' --json
  echo '{\"path\": \"a\"}' | haft mcp call files read_file -
  haft mcp call --command 'npx -y @modelcontextprotocol/server-everything' echo message=hi

Progress is written to standard error; Ctrl-C cancels the call. Exits with 0 if the call succeeded, with 1 if it \
failed or was denied, with 2 if the server, the tool or the arguments are wrong."
    )]
    Call(McpCallArguments),
    /// Show the state of each server: reason of a failure, tools, held tools, calls, errors, latency
    ///
    /// Asks the `haft serve` that the configuration or `--server` names, with the key of `HAFT_API_KEY`. Where none
    /// runs, it shows what the data folder knows: saved lists, pinned definitions and the record of calls.
    Status(McpStatusArguments),
    /// Show the last calls through the gateway, from the record in the data folder
    #[command(after_help = "\
Examples:
  haft mcp calls                          the last 20 calls
  haft mcp calls --server files --errors  those of one server that did not succeed
  haft mcp calls --limit 1000 --json")]
    Calls(McpCallsArguments),
    /// Accept changed or new tools of a server
    ///
    /// The tools that a server lists first are accepted as they are. From then on a tool that changes, or is new, is
    /// held back (`pin = "hold"`) until it is accepted here. A running haft reads the change with the next list.
    Accept(McpAcceptArguments),
    /// Log in to a server that asks for authorization
    #[command(after_help = "\
Examples:
  haft mcp login search                   open the printed page in a browser of this machine
  haft mcp login search --paste           on a host without a browser: paste back where the page led to
  haft mcp login search --port 8765       for clients that are registered with a fixed address

The page leads back to a port of this machine, within five minutes. The login is stored in the data folder, readable \
for its owner only, and used by `haft serve` and all commands with the same folder.")]
    Login(McpLoginArguments),
    /// Count the tokens of tool definitions, with and without the gateway
    Cost(McpCostArguments),
    /// Serve all tools as one MCP server on standard input and output
    #[command(after_help = "\
Examples:
  haft mcp serve                          every tool, or three that find the others where there are many
  haft mcp serve --mode facade            always those three: search, describe and call
  haft mcp serve --only files,search      the tools of two servers
  haft mcp serve --tools 'files__read*'   some tools, by their exposed names
  haft mcp serve --concerto tools.conc    with the tools of a Concerto program

`haft mcp install CLIENT` writes this into the settings of a client:
  {\"mcpServers\": {\"haft\": {\"command\": \"haft\", \"args\": [\"mcp\", \"serve\", \"--config\", \"/etc/haft.toml\"]}}}

Standard output carries only the protocol; the log is on standard error (HAFT_LOG=debug for more). Servers are \
started when they are needed. `haft serve --mcp` serves the same over HTTP, at `/mcp`.")]
    Serve(McpServeArguments),
    /// Start a program, and end it with all that it started when the parent is gone
    #[command(hide = true)]
    Supervise(SuperviseArguments),
}

#[derive(Debug, Args)]
pub(crate) struct McpListArguments {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: McpFrom,
}

#[derive(Debug, Args)]
pub(crate) struct McpStatusArguments {
    /// Print JSON: a list of servers
    #[arg(long)]
    pub(crate) json: bool,
    /// Where lists and accepted definitions are kept; the server's data folder where nothing is said
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct McpCallsArguments {
    /// Only calls of this server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Only calls of this tool, by the server's own name for it
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    /// Only calls that did not succeed
    #[arg(long)]
    pub(crate) errors: bool,
    /// At most so many, the newest [default: 20]
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 20,
        hide_default_value = true
    )]
    pub(crate) limit: usize,
    /// Print JSON: a list of calls
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: McpFrom,
}

#[derive(Debug, Args)]
pub(crate) struct McpTestArguments {
    /// The servers, as `haft mcp list` shows them [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: McpFrom,
    #[command(flatten)]
    pub(crate) ad_hoc: AdHoc,
}

#[derive(Debug, Args)]
pub(crate) struct McpToolsArguments {
    /// The server, as `haft mcp list` shows it
    #[arg(value_name = "NAME", required_unless_present_any = ["command", "url"])]
    pub(crate) name: Option<String>,
    /// Print JSON, with the whole definitions
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: McpFrom,
    #[command(flatten)]
    pub(crate) ad_hoc: AdHoc,
}

#[derive(Debug, Args)]
pub(crate) struct McpCallArguments {
    /// The server, its tool, and the arguments: a JSON object, `-` for standard input, or `KEY=VALUE` pairs
    #[arg(value_name = "NAME TOOL ARGUMENTS", required = true)]
    pub(crate) words: Vec<String>,
    /// Print JSON, with the server's whole result
    #[arg(long)]
    pub(crate) json: bool,
    /// Approve the call if it needs approval
    #[arg(long, short)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) from: McpFrom,
    #[command(flatten)]
    pub(crate) ad_hoc: AdHoc,
}

#[derive(Debug, Args)]
pub(crate) struct McpAcceptArguments {
    /// The server, as `haft mcp list` shows it
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The tool, by the server's own name for it [default: all that are held back]
    #[arg(value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    /// Accept what this tenant sees with its own credentials
    #[arg(long, value_name = "TENANT")]
    pub(crate) user: Option<String>,
    /// Accept without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: McpFrom,
}

#[derive(Debug, Args)]
pub(crate) struct McpLoginArguments {
    /// The server, as `haft mcp list` shows it
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Log in for this tenant, whose calls then use the login (`per_user = true` in `[mcp.NAME.oauth]`)
    #[arg(long, value_name = "TENANT")]
    pub(crate) user: Option<String>,
    /// Delete the stored login
    #[arg(long)]
    pub(crate) forget: bool,
    /// Let the browser come back to this port [default: `callback_port` of the server, else any free one]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Read the address that the browser was led back to from standard input
    #[arg(long)]
    pub(crate) paste: bool,
    /// Print JSON, with the granted scopes
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: McpFrom,
}

#[derive(Debug, Args)]
pub(crate) struct McpServeArguments {
    /// Serve the endpoint `[gateway.NAME]` of the configuration [default: `[gateway]`]
    #[arg(long, value_name = "NAME")]
    pub(crate) endpoint: Option<String>,
    /// Call servers with the credentials of this tenant [default: those of the configuration]
    #[arg(long, value_name = "TENANT")]
    pub(crate) user: Option<String>,
    /// Choose what clients see: every tool, three that find the others, or whichever fits [default: as `[gateway]`
    /// says]
    #[arg(long, value_enum, value_name = "MODE", hide_possible_values = false)]
    pub(crate) mode: Option<GatewayMode>,
    /// Serve only the tools of these servers
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Serve only these tools, by their exposed names; `*` matches any text
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    pub(crate) tools: Vec<String>,
    #[command(flatten)]
    pub(crate) from: McpFrom,
    #[command(flatten)]
    pub(crate) scripts: ScriptArguments,
}

/// A server that is not configured.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "A server that is not configured")]
pub(crate) struct AdHoc {
    /// Start this program, with its arguments as a shell would read them
    #[arg(long, value_name = "COMMAND", conflicts_with = "url")]
    pub(crate) command: Option<String>,
    /// Connect to this address
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Set a variable of the program
    #[arg(long, value_name = "KEY=VALUE", requires = "command")]
    pub(crate) env: Vec<String>,
    /// Send a header to the address
    #[arg(long, value_name = "NAME: VALUE", requires = "url")]
    pub(crate) header: Vec<String>,
    /// Send the bearer token that this variable holds
    #[arg(long, value_name = "VARIABLE", requires = "url")]
    pub(crate) bearer_env: Option<String>,
}

/// The configuration that describes the servers.
#[derive(Debug, Default, Args)]
pub(crate) struct McpFrom {
    /// Read this configuration [default: `haft.toml` of this folder, else the user's]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Keep lists and accepted definitions in this folder [default: the data folder of the configuration]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SuperviseArguments {
    /// Watch this process
    #[arg(long, value_name = "PID")]
    pub(crate) parent: u32,
    /// Start this program
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
}

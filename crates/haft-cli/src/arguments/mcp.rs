//! `haft mcp`: what its command line may say.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{RemoteArguments, ScriptArguments};
use crate::config::GatewayMode;

/// What stands below the help of `haft mcp`.
pub(super) const MCP_HELP: &str = "\
Examples:
  haft mcp list                           the servers of haft.toml
  haft mcp test                           whether each of them works
  haft mcp tools files                    the tools of one
  haft mcp call files read_file path=README.md
  haft mcp status                         state, calls and errors of each server
  haft mcp calls --errors                 the last calls that did not succeed
  haft mcp accept files                   look at changed tools, and let them be used
  haft mcp test --command 'npx -y @modelcontextprotocol/server-everything'
  haft mcp call --url http://127.0.0.1:9000/mcp echo message=hello
  haft mcp login search                   log in to a server that asks for it
  haft mcp serve                          all of them as one server, for other programs

Servers are described in `[mcp.NAME]` of haft.toml (`haft init` shows every key), or in a file of another \
client that `mcp_servers` of `[server]` names.";

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// List the configured servers, and what is known of each; nothing is started
    List(McpListArguments),
    /// Connect to servers and say how each is: era, version, tools, time, and what is wrong
    #[command(after_help = "\
Examples:
  haft mcp test                           all servers of haft.toml, at the same time
  haft mcp test files search --json
  haft mcp test --url https://mcp.example.com/mcp --bearer-env EXAMPLE_TOKEN

Ends with 0 if all of them work, with 1 if one does not.")]
    Test(McpTestArguments),
    /// Show the tools of a server, and those that are held back with what has changed
    #[command(override_usage = "haft mcp tools [OPTIONS] NAME\n       \
                                haft mcp tools [OPTIONS] --command COMMAND|--url URL")]
    Tools(McpToolsArguments),
    /// Call a tool of a server, by the same checks as a call of a model
    #[command(
        override_usage = "haft mcp call [OPTIONS] NAME TOOL [ARGUMENTS]...\n       \
                          haft mcp call [OPTIONS] --command COMMAND|--url URL TOOL [ARGUMENTS]...",
        after_help = "\
Examples:
  haft mcp call files read_file path=README.md
  haft mcp call files search '{\"query\": \"retry\", \"limit\": 3}' --json
  echo '{\"path\": \"a\"}' | haft mcp call files read_file -
  haft mcp call --command 'npx -y @modelcontextprotocol/server-everything' echo message=hi

Progress is told on standard error; Ctrl-C cancels the call. Ends with 0 if the call succeeded, with 1 if it \
failed or was not allowed, with 2 if there is no such server or tool or its arguments are wrong."
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
    /// Let changed or new tools of a server be used, after a look at what has changed
    ///
    /// What a server listed at first was taken as it was. From then on a tool that changes, or is new, is
    /// held back (`pin = "hold"`) until it is accepted here. A server that runs takes it over when it reads
    /// the list the next time.
    Accept(McpAcceptArguments),
    /// Log in to a server that asks for authorization
    ///
    /// The page to log in at is shown; it comes back to a port of this machine, so a browser of this machine
    /// must open it, within five minutes. The login is kept in the data folder, readable for its owner
    /// alone, and used by `haft serve` and all commands with the same folder.
    Login(McpLoginArguments),
    /// Be an MCP server on standard input and output: haft's own tools and those of all servers
    #[command(after_help = "\
Examples:
  haft mcp serve                          every tool, or three to find them where they are many
  haft mcp serve --mode facade            always those three: search, describe and call
  haft mcp serve --only files,search      the tools of two servers
  haft mcp serve --tools 'files__read*'   some tools, by their names here
  haft mcp serve --concerto tools.conc    with the tools of a Concerto program

For a client such as Claude Desktop or Cursor:
  {\"mcpServers\": {\"haft\": {\"command\": \"haft\", \"args\": [\"mcp\", \"serve\", \"--config\", \"/etc/haft.toml\"]}}}

Standard output carries the protocol and nothing else; the log is on standard error (HAFT_LOG=debug says \
more). Servers are started when they are needed. Over HTTP the same is at `/mcp` of `haft serve --mcp`.")]
    Serve(McpServeArguments),
    /// Start a program and end it, with all that it started, when the parent is gone
    #[command(hide = true)]
    Supervise(SuperviseArguments),
}

#[derive(Debug, Args)]
pub(crate) struct McpListArguments {
    /// Print JSON: a list of servers
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
    /// Which, as `haft mcp list` names them; all of them where none is named
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Print JSON: what became of each
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: McpFrom,
    #[command(flatten)]
    pub(crate) ad_hoc: AdHoc,
}

#[derive(Debug, Args)]
pub(crate) struct McpToolsArguments {
    /// Which server, as `haft mcp list` names it
    #[arg(value_name = "NAME", required_unless_present_any = ["command", "url"])]
    pub(crate) name: Option<String>,
    /// Print JSON: the whole definitions
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: McpFrom,
    #[command(flatten)]
    pub(crate) ad_hoc: AdHoc,
}

#[derive(Debug, Args)]
pub(crate) struct McpCallArguments {
    /// The server, its tool, and the arguments: one JSON object, `-` for standard input, or `KEY=VALUE` for
    /// each
    #[arg(value_name = "NAME TOOL ARGUMENTS", required = true)]
    pub(crate) words: Vec<String>,
    /// Print JSON: what became of the call, with the server's whole result
    #[arg(long)]
    pub(crate) json: bool,
    /// Let the call run if it would be asked about
    #[arg(long, short)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) from: McpFrom,
    #[command(flatten)]
    pub(crate) ad_hoc: AdHoc,
}

#[derive(Debug, Args)]
pub(crate) struct McpAcceptArguments {
    /// Which server, as `haft mcp list` names it
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Which tool, by the server's own name for it; all that wait where none is named
    #[arg(value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    /// Without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print JSON: what was accepted
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: McpFrom,
}

#[derive(Debug, Args)]
pub(crate) struct McpLoginArguments {
    /// Which server, as `haft mcp list` names it
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Forget the login in place of making one
    #[arg(long)]
    pub(crate) forget: bool,
    /// Print JSON: the rights that were granted
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
    /// What clients see: every tool, three that find the others, or whichever fits; as `[gateway]` says
    /// where nothing is said here
    #[arg(long, value_enum, value_name = "MODE", hide_possible_values = false)]
    pub(crate) mode: Option<GatewayMode>,
    /// Only the tools of these servers
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Only these tools, by their names here; `*` stands for any text
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    pub(crate) tools: Vec<String>,
    #[command(flatten)]
    pub(crate) from: McpFrom,
    #[command(flatten)]
    pub(crate) scripts: ScriptArguments,
}

/// A server that no configuration knows.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "A server that is not configured")]
pub(crate) struct AdHoc {
    /// The program of a server, with its arguments, as a shell would read it; it is pinned to nothing
    #[arg(long, value_name = "COMMAND", conflicts_with = "url")]
    pub(crate) command: Option<String>,
    /// The address of a server
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// A variable for the program
    #[arg(long, value_name = "KEY=VALUE", requires = "command")]
    pub(crate) env: Vec<String>,
    /// A header for the address
    #[arg(long, value_name = "NAME: VALUE", requires = "url")]
    pub(crate) header: Vec<String>,
    /// The variable that holds a bearer token for the address
    #[arg(long, value_name = "VARIABLE", requires = "url")]
    pub(crate) bearer_env: Option<String>,
}

/// The configuration that says which servers there are.
#[derive(Debug, Default, Args)]
pub(crate) struct McpFrom {
    /// The configuration; `haft.toml` of this folder, if it is there, where none is named
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where lists and accepted definitions are kept; the server's data folder where nothing is said
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SuperviseArguments {
    /// The process that is watched
    #[arg(long, value_name = "PID")]
    pub(crate) parent: u32,
    /// What to start
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
}

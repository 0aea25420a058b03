//! What the command line may say.

mod backup;
mod chat;
mod concerto;
mod help;
mod mcp;
mod mcp_setup;
mod prompt;
mod remote;
mod responses;
mod slip;
mod tools;
mod trace;
mod value;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use haft::Model;
use haft::models::{Anthropic, ConfigError, OfflineModel, Ollama, OpenAiChat, OpenAiResponses};

use self::help::{CHAT_HELP, COMPLETIONS_HELP, MAIN_HELP, RESPONSES_HELP, SERVE_HELP};
use self::value::at_least_one;
use crate::config::{Age, Listen};
use crate::terminal::Color;

use self::backup::{BACKUP_HELP, RESTORE_HELP};
pub(crate) use self::backup::{BackupArguments, RestoreArguments};
pub(crate) use self::chat::ChatArguments;
pub(crate) use self::concerto::{
    CheckArguments, CompileArguments, EVERYTHING, EmitForm, FmtArguments, LimitArguments,
    PermissionArguments, Program, ReplArguments, RunArguments, ScriptArguments, TestArguments,
};
use self::concerto::{FMT_HELP, REPL_HELP, RUN_HELP, TEST_HELP};
use self::mcp::MCP_HELP;
pub(crate) use self::mcp::{
    AdHoc, McpAcceptArguments, McpCallArguments, McpCallsArguments, McpCommand, McpFrom,
    McpListArguments, McpLoginArguments, McpServeArguments, McpStatusArguments, McpTestArguments,
    McpToolsArguments, SuperviseArguments,
};
pub(crate) use self::mcp_setup::{
    McpAddArguments, McpCostArguments, McpImportArguments, McpInstallArguments, McpRemoveArguments,
};
pub(crate) use self::prompt::{PromptCommand, RenderArguments};
pub(crate) use self::remote::{RemoteArguments, SERVER};
pub(crate) use self::responses::{
    DeleteArguments, ListArguments, ResponsesCommand, ShowArguments, WaitArguments,
};
pub(crate) use self::slip::refuse;
pub(crate) use self::tools::{
    CallToolArguments, FromConfiguration, ListToolsArguments, SearchToolsArguments,
    ShowToolArguments, ToolCostArguments, ToolsCommand, WhichTools,
};
pub(crate) use self::trace::TraceArguments;

/// haft, the handle between a language model and its tools.
///
/// Without a command it serves the Responses API: `haft serve`.
#[derive(Debug, Parser)]
#[command(name = "haft", version, after_help = MAIN_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// When to use colours: `auto` is on a terminal and without `NO_COLOR`, then `always`, `never`
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        hide_possible_values = true,
        value_name = "WHEN",
        display_order = 900
    )]
    pub(crate) color: Color,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the Open Responses API over any model, with tools (what `haft` alone does, too)
    #[command(after_help = SERVE_HELP)]
    Serve(ServeArguments),
    /// Run a Concerto program
    #[command(after_help = RUN_HELP)]
    Run(RunArguments),
    /// Say what is wrong with a Concerto program; nothing is written and nothing started
    Check(CheckArguments),
    /// Compile a Concerto program to `.conc-ir`
    Compile(CompileArguments),
    /// Run the tests of a Concerto program
    #[command(after_help = TEST_HELP)]
    Test(TestArguments),
    /// Bring Concerto programs into their usual form
    #[command(after_help = FMT_HELP)]
    Fmt(FmtArguments),
    /// Try Concerto out, line by line
    #[command(after_help = REPL_HELP)]
    Repl(ReplArguments),
    /// Write a `haft.toml` with every key, its default and what it is for, or begin a Concerto project
    Init(InitArguments),
    /// Make, list and revoke the keys that clients of a server send
    Keys(KeysArguments),
    /// Copy a server's data folder consistently, also while the server runs
    #[command(after_help = BACKUP_HELP)]
    Backup(BackupArguments),
    /// Put a backup back into a data folder that no server uses
    #[command(after_help = RESTORE_HELP)]
    Restore(RestoreArguments),
    /// Talk to a model that may use tools: with the engine of this process, or with a server
    #[command(after_help = CHAT_HELP)]
    Chat(ChatArguments),
    /// List, show, wait for and delete what a server has stored
    #[command(subcommand, after_help = RESPONSES_HELP)]
    Responses(ResponsesCommand),
    /// Show how the run of a response went: turns, calls, timings, tokens
    Trace(TraceArguments),
    /// List, show and call the tools that `haft serve` has with this folder's configuration
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// Show what a model would see of the prompt that this folder's configuration describes
    #[command(subcommand)]
    Prompt(PromptCommand),
    /// Import, test, call and serve MCP servers
    #[command(subcommand, after_help = MCP_HELP)]
    Mcp(McpCommand),
    /// Check a configuration, or show what it comes to
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Write the script that lets a shell complete what `haft` takes
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// For which shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Show what haft does; needs no network, no key and no model
    Demo {
        /// What to show
        #[arg(value_enum, default_value = "loop")]
        show: Show,
    },
    /// Ask a model a question; it may use the tools of the demonstration
    Ask {
        /// The question
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        question: String,
        /// Who answers: `offline`, or one of `openai-chat:NAME`, `openai-responses:NAME`,
        /// `anthropic:NAME`, `ollama:NAME`
        ///
        /// Keys and addresses come from the environment: `OPENAI_API_KEY` and `OPENAI_BASE_URL`,
        /// `ANTHROPIC_API_KEY` and `ANTHROPIC_BASE_URL`, `OLLAMA_HOST`.
        #[arg(long, default_value = "offline")]
        model: ModelChoice,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say whether it is right, and what a server would do with it
    Check(ConfigArguments),
    /// Show every key that has a value, and where that comes from; secrets are not shown
    Show(ConfigArguments),
    /// Show every key that there is with its type, its default and its meaning, as Markdown
    Reference,
    /// Show the JSON Schema of `haft.toml`, for editors that check and complete what is written
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: FromConfiguration,
}

#[derive(Debug, Default, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct ServeArguments {
    /// The configuration; `haft.toml` of this folder, if it is there, where none is named
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<Listen>,
    /// Where responses are kept
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Listen where others can reach it although there is no key: everybody can use it then
    #[arg(long)]
    pub(crate) allow_anonymous: bool,
    /// Be an MCP server as well, at `/mcp`, with haft's own tools and those of `[mcp.*]`; `[gateway]` of
    /// the configuration says which of them
    #[arg(long)]
    pub(crate) mcp: bool,
    /// Who answers, in place of the configuration's models: `offline`, or one of
    /// `openai-chat:NAME`, `openai-responses:NAME`, `anthropic:NAME`, `ollama:NAME`
    ///
    /// Where neither this nor the configuration names a model, one is looked for: a provider's key
    /// in the environment, then Ollama or an OpenAI-compatible server on its usual port of this
    /// machine. Where there is none, the offline model answers, by rules.
    #[arg(long, value_name = "ADAPTER:NAME")]
    pub(crate) model: Option<ModelChoice>,
    /// Start although sealing keys are missing that the data was used with: what was sealed with them
    /// cannot be opened any more
    #[arg(long)]
    pub(crate) forget_sealing_keys: bool,
    /// Start although the file of API keys is missing that the data was used with: no key is needed any
    /// more until one is made
    #[arg(long)]
    pub(crate) forget_api_keys: bool,
    /// Start although the clock is behind the time when the data was last used
    #[arg(long)]
    pub(crate) accept_clock: bool,
    #[command(flatten)]
    pub(crate) scripts: ScriptArguments,
}

#[derive(Debug, Args)]
pub(crate) struct KeysArguments {
    #[command(subcommand)]
    pub(crate) what: KeysCommand,
    /// The server's configuration; `haft.toml` of this folder, if it is there, where none is named
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// The server's data folder, where the keys are
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Make a key; it is printed this once, alone on standard output
    ///
    /// A server that runs takes it over within a second or so. From the first key on, every request
    /// needs one.
    Add {
        /// What to call it
        name: String,
        /// Whose responses, conversations and files it opens; those of other tenants it never sees
        #[arg(long, default_value = "default")]
        tenant: String,
        /// What its holder is, for endpoints and rules of the MCP gateway; may be given several times
        #[arg(long = "role", value_name = "NAME")]
        roles: Vec<String>,
        /// How many responses it may ask for in a minute; the server's limit where nothing is said
        #[arg(long, value_name = "N", value_parser = at_least_one)]
        requests_per_minute: Option<NonZeroU32>,
        /// How many at the same time; the server's limit where nothing is said
        #[arg(long, value_name = "N", value_parser = at_least_one)]
        concurrent: Option<NonZeroU32>,
        /// How long it works, such as `30d`; until it is revoked where nothing is said
        #[arg(long, value_name = "TIME")]
        expires: Option<Age>,
    },
    /// Show all keys: whose they are, whether they work, how they end
    List {
        /// As JSON, for programs
        #[arg(long)]
        json: bool,
    },
    /// Take a key back; a server that runs refuses it within a second or so
    Revoke {
        /// Its id, or its name
        #[arg(value_name = "ID|NAME")]
        which: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// Where to write it: a file, whose folder is made if it is not there, or a folder that is there;
    /// `haft.toml` where nothing is said. With `--concerto` the folder of the project
    pub(crate) path: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long)]
    pub(crate) force: bool,
    /// Begin a Concerto project in place of a configuration: a manifest, a program with a tool, and a
    /// test; nothing that is there is written over
    #[arg(long, conflicts_with = "force")]
    pub(crate) concerto: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Show {
    /// A whole run: question, calls, results, answer
    Loop,
    /// Thirteen calls as models write them, good, broken and hostile, and what becomes of each
    Calls,
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelChoice {
    Offline,
    OpenAiChat(String),
    OpenAiResponses(String),
    Anthropic(String),
    Ollama(String),
}

impl ModelChoice {
    /// The model, with its key from the environment.
    pub(crate) fn model(&self) -> Result<Arc<dyn Model>, ConfigError> {
        Ok(match self {
            Self::Offline => Arc::new(OfflineModel::new()),
            Self::OpenAiChat(name) => Arc::new(OpenAiChat::from_env(name)?),
            Self::OpenAiResponses(name) => Arc::new(OpenAiResponses::from_env(name)?),
            Self::Anthropic(name) => Arc::new(Anthropic::from_env(name)?),
            Self::Ollama(name) => Arc::new(Ollama::from_env(name)?),
        })
    }
}

impl FromStr for ModelChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "offline" {
            return Ok(Self::Offline);
        }
        // Names of models may hold colons too: `ollama:qwen3:8b`.
        let (adapter, name) = text.split_once(':').unwrap_or((text, ""));
        let named = match adapter {
            "openai-chat" => Self::OpenAiChat,
            "openai-responses" => Self::OpenAiResponses,
            "anthropic" => Self::Anthropic,
            "ollama" => Self::Ollama,
            _ => {
                let known = "`openai-chat`, `openai-responses`, `anthropic`, `ollama`";
                return Err(format!(
                    "`{adapter}` is no adapter: use `offline`, or one of {known} with a colon and \
                     the model's name"
                ));
            }
        };
        if name.trim().is_empty() {
            return Err(format!(
                "the model's name is missing: write `{adapter}:NAME`"
            ));
        }
        Ok(named(name.to_owned()))
    }
}

#[cfg(test)]
mod tests;

//! `haft tools`: the tools that `haft serve` would have with this folder's configuration.
//!
//! What comes in: names, and arguments as a person writes them. What goes out: definitions as a
//! person reads them, and the results of calls. A call goes the same way as one of a model: parsed,
//! validated, gated, run with its timeout. Neither a model nor a server is needed.

mod arguments;
mod call;
mod cost;
mod definitions;
mod holding;
mod search;
mod show;

pub(crate) use self::call::ByHand;
use self::holding::{Held, Holding};

use std::error::Error;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use haft::{Catalog, LoopOptions, ToolDefinition, ToolKind, Value};
use haft_mcp::Pool;
use owo_colors::OwoColorize;

use crate::arguments::{FromConfiguration, ListToolsArguments, ScriptArguments, ToolsCommand};
use crate::catalogue::{self, HostedHere};
use crate::concerto::{Scripts, Wanted, Words};
use crate::config::{ConcertoConfig, Resolved, without_models};
use crate::failure::Failure;
use crate::inquiry;
use crate::mcp;
use crate::terminal::{Spinner, print_json};
use crate::text::{nearest, one_line, printable};

/// The tool that is there only if there is something to search.
const SEARCH: &str = "search_files";

/// What to do about that.
const NO_FOLDERS: &str = "it searches the `folders` of `[search_files]` in `haft.toml`: list some";

/// Performs it.
pub(crate) async fn perform(command: ToolsCommand) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        ToolsCommand::List(arguments) => list(&arguments).await,
        ToolsCommand::Show(arguments) => show::show(&arguments).await,
        ToolsCommand::Call(arguments) => call::call(arguments).await,
        ToolsCommand::Search(arguments) => search::search(&arguments).await,
        ToolsCommand::Cost(arguments) => cost::cost(&arguments).await,
    }
}

/// The tools of a configuration, and what bounds their calls.
pub(crate) struct Toolbox {
    tools: HostedHere,
    /// The MCP servers whose tools are there, too.
    pool: Pool,
    /// The programs whose tools are there, too.
    scripts: Scripts,
    /// What the configuration says of them.
    concerto: ConcertoConfig,
    /// Whether folders are searched.
    has_search: bool,
    options: LoopOptions,
}

impl Toolbox {
    async fn open(
        from: &FromConfiguration,
        scripts: &ScriptArguments,
    ) -> Result<Self, Box<dyn Error>> {
        let config = from.config.as_deref();
        let toolbox = Self::of(without_models(config)?)?;
        toolbox.with_scripts(config, scripts).await
    }

    /// With the tools of Concerto programs.
    pub(crate) async fn with_scripts(
        mut self,
        config: Option<&Path>,
        flags: &ScriptArguments,
    ) -> Result<Self, Box<dyn Error>> {
        let wanted = Wanted {
            flags,
            said: &self.concerto,
            config,
        };
        self.scripts = Scripts::open(&wanted, self.catalog(), Words::Aside).await?;
        Ok(self)
    }

    /// Those of a configuration that was read.
    pub(crate) fn of(config: Resolved) -> Result<Self, Box<dyn Error>> {
        let search = config.search_files.as_ref();
        let has_search = search.is_some_and(|it| !it.folders.is_empty());
        let folder = match config.mcp.as_slice() {
            [] => None,
            _ => Some(crate::serve::data_dir(&config.data_dir)?),
        };
        let (pool, unusable) = mcp::pool_of(&config.mcp, folder.as_deref(), inquiry::questions())?;
        for (_, error) in unusable {
            note(&error.to_string());
        }
        let tools = catalogue::hosted_here(config.search_files, &config.data_dir)?;
        Ok(Self {
            tools,
            pool,
            scripts: Scripts::default(),
            concerto: config.concerto,
            has_search,
            options: config.loop_options,
        })
    }

    /// With the tools of the MCP servers, unless one of haft's own is wanted.
    pub(crate) async fn with_tools_of(self, wanted: Option<&str>) -> Result<Self, Failure> {
        let is_own = |name: &str| self.find(name).is_ok();
        if self.pool.servers().is_empty() || wanted.is_some_and(is_own) {
            return Ok(self);
        }
        let spinner = Spinner::new("asking MCP servers for their tools");
        let notes = catalogue::add_mcp(self.catalog(), &self.pool);
        for text in spinner.during(notes).await {
            note(&text);
        }
        Ok(self)
    }

    /// Ends what was started.
    pub(crate) async fn close(&self) {
        self.scripts.close().await;
        self.pool.close().await;
    }

    /// What holds for its tools, as they are now.
    fn holding(&self) -> Holding {
        Holding::of(&self.options, &self.catalog().list())
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.tools.catalog
    }

    /// The tool of this name, with or without its prefix.
    fn find(&self, name: &str) -> Result<Arc<ToolDefinition>, Failure> {
        let bare = name.strip_prefix(catalogue::PREFIX).unwrap_or(name);
        let tools = self.catalog().list();
        let found = tools.iter().find(|tool| tool.name().as_str() == bare);
        found.cloned().ok_or_else(|| {
            let names = tools.iter().map(|tool| tool.name().as_str());
            let shown = one_line(name, 64);
            let remedy = match nearest(bare, names) {
                _ if bare == SEARCH && !self.has_search => String::from(NO_FOLDERS),
                Some(near) => format!("did you mean `{near}`?"),
                None => String::from("`haft tools list` shows those that there are"),
            };
            Failure::mistake(format!("there is no tool `{shown}`")).remedy(remedy)
        })
    }
}

/// What requests to a server call it.
fn type_of(tool: &ToolDefinition) -> String {
    match tool.kind() {
        ToolKind::Custom(kind) => kind.to_string(),
        ToolKind::Mcp => String::from("mcp"),
        _ => format!("{}{}", catalogue::PREFIX, tool.name()),
    }
}

/// The definition, and what stands beside it.
fn json_of(tool: &ToolDefinition, held: &Held) -> Value {
    let mut json = tool.to_json();
    json["type"] = type_of(tool).into();
    json["kind"] = tool.kind().to_string().into();
    json["holding"] = held.json();
    json
}

/// Says beside the rest what is not as it should be.
pub(crate) fn note(text: &str) {
    // Whether somebody reads along changes nothing.
    let _ = writeln!(io::stderr(), "note: {}", printable(text));
}

async fn list(arguments: &ListToolsArguments) -> Result<ExitCode, Box<dyn Error>> {
    let toolbox = Toolbox::open(&arguments.from, &arguments.scripts).await?;
    let toolbox = toolbox.with_tools_of(None).await?;
    toolbox.close().await;
    let tools = toolbox.catalog().list();
    let holding = toolbox.holding();
    if arguments.json {
        let list = tools.iter().map(|tool| json_of(tool, &holding.tool(tool)));
        let list: Vec<Value> = list.collect();
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = anstream::stdout().lock();
    let mut held_back = Vec::new();
    for tool in &tools {
        let name = one_line(tool.name().as_str(), 64);
        let kind = one_line(&type_of(tool), 64);
        let brief = one_line(tool.brief(), 120);
        // Names of MCP tools are longer than haft's own, and all but never short.
        let (name, kind) = (format!("{name:<14}"), format!("{kind:<20}"));
        let gap = if name.ends_with(' ') { "" } else { "  " };
        let brief_gap = if kind.ends_with(' ') { "" } else { "  " };
        let held = holding.tool(tool);
        let mark = if held.is_held { "  (held back)" } else { "" };
        writeln!(
            out,
            "{}{gap}{}{brief_gap}{brief}{}",
            name.cyan(),
            kind.dimmed(),
            mark.dimmed()
        )?;
        if held.is_held && !held_back.contains(&held.because) {
            held_back.push(held.because);
        }
    }
    let mut words = String::from(
        "requests name them by type, as in `\"tools\": [{\"type\": \"haft:clock\"}]`; `haft tools show \
         NAME` tells more, `haft tools call NAME` calls one",
    );
    if !held_back.is_empty() {
        let because = held_back.join("; ");
        words =
            format!("{words}\nheld back until the model finds them with `search_tools`: {because}");
    }
    if !toolbox.has_search {
        words = format!("{words}\n`{SEARCH}` is not there: {NO_FOLDERS}");
    }
    writeln!(io::stderr(), "\n{words}")?;
    Ok(ExitCode::SUCCESS)
}

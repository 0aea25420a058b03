//! The tools of one request: what the model may see and call, and what each is for the client
//! (`open-responses.md` §5).

mod builder;
mod choice;
mod deferral;
mod freeform;
mod hosted;
mod mcp;
mod names;
mod provider;
mod renamed;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use haft_catalog::{BindError, Binding, Catalog, Snapshot};
use haft_core::{
    Defer, Owner, ProviderOptions, ProviderTools, ToolChoice, ToolDefinition, ToolName, ToolRef,
};
use haft_engine::{LoopOptions, is_held_back, search_tool_name, search_tools_described};

use crate::error::{ApiError, ErrorCode};
use crate::history::{ToolNames, Unsaid};
use crate::mcp::ListedServer;
use crate::stream::{HostedCall, Shown};
use crate::wire::{OWN_LABEL, RequestTool, RequestToolKind, WireChoice};

use builder::Builder;
use choice::{Lowered, Offer, lower_choice};
use deferral::Deferral;
pub(crate) use deferral::{Declared, Search, definitions};
pub(crate) use hosted::hosted_tools;
use names::{Identity, Names};
pub(crate) use provider::includes_for;
pub(crate) use renamed::of_type;

/// What becomes of hosted tool types that nobody provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnsupportedTools {
    /// `web_search` is left out with a warning, because coding agents send it unasked; every other
    /// is refused.
    #[default]
    WebSearch,
    /// All are left out with a warning.
    Ignore,
    /// All are refused.
    Reject,
}

/// The tools of one request.
#[derive(Debug)]
pub(crate) struct Toolkit {
    pub(crate) binding: Binding,
    /// What the model must call until a tool has run, where the binding says something else.
    pub(crate) first_choice: Option<ToolChoice>,
    /// What each tool is for the client, by the name that the model calls it by.
    pub(crate) shown: HashMap<String, Shown>,
    /// The tools about whose calls somebody may be asked, by the same name.
    pub(crate) asking: HashSet<String>,
    /// The labels of the MCP servers, and what became of each.
    servers: HashMap<String, ServerState>,
    /// Whether the request declares a tool that runs here.
    pub(crate) is_agentic: bool,
    /// Whether it asks for vendor events.
    pub(crate) wants_events: bool,
    /// What goes to the model's provider in its own form.
    pub(crate) provider: ProviderOptions,
    /// The types that were left out.
    pub(crate) ignored: Vec<String>,
    /// Whether tools are held back that say nothing about it.
    pub(crate) defer: Defer,
    /// What was loaded before, in order.
    pub(crate) loaded: Vec<ToolName>,
    /// What the model reads of what there is to be found.
    pub(crate) search_note: Option<String>,
    /// The tools as their client declared them, by the name that the model calls them by.
    pub(crate) declared: Arc<HashMap<String, Declared>>,
    /// What is to be remembered of a search that nobody sees; none where there is none.
    pub(crate) unsaid: Option<Unsaid>,
    /// Who searches, by the request's own word.
    pub(crate) search: Search,
    /// What the model calls the search of this server.
    search_name: String,
    names: Names,
}

/// What goes into a toolkit.
pub(crate) struct Ingredients<'r> {
    pub(crate) tools: &'r [RequestTool],
    /// Tools that items of the history brought, oldest first.
    pub(crate) loaded: &'r [RequestTool],
    pub(crate) choice: &'r WireChoice,
    pub(crate) snapshot: &'r Arc<Snapshot>,
    /// Whose request it is: some tools are not the same for everybody.
    pub(crate) owner: &'r Owner,
    pub(crate) unsupported: UnsupportedTools,
    /// The types that the model takes in its provider's own form.
    pub(crate) provider_tools: &'r ProviderTools,
    /// The MCP servers of the request.
    pub(crate) mcp: &'r [ListedServer],
    pub(crate) options: &'r LoopOptions,
    /// How much the model reads, as far as that is known.
    pub(crate) context_tokens: Option<u64>,
    /// What was loaded before without a word.
    pub(crate) unsaid: Option<Unsaid>,
}

/// Tools that are deferred although the request does not ask for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Deferred {
    pub(crate) count: usize,
    /// How many tools the request has in all.
    pub(crate) of: usize,
    /// The tool that finds them.
    pub(crate) search: String,
}

/// What became of an MCP server of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerState {
    Listed,
    /// It has no tools now, because of this.
    Unavailable(String),
    /// It waits for the client's search.
    Deferred,
}

impl Ingredients<'_> {
    /// Whether no tool comes of them, nor anything to be said about one.
    fn are_nothing(&self) -> bool {
        self.tools.is_empty()
            && self.loaded.is_empty()
            && self.mcp.is_empty()
            && self.unsaid.is_none()
            && *self.choice == WireChoice::Auto
            && self.options.defer == Defer::Auto
    }

    /// How many tools the request and the items of its history bring, each counted once: namespaces and servers
    /// like the tools in them.
    pub(crate) fn count(&self) -> usize {
        let mut seen = HashSet::new();
        for tool in self.tools.iter().chain(self.loaded) {
            note_names(tool, None, &mut seen);
        }
        seen.len()
    }
}

/// Notes what a tool, and each tool in it, is known by.
fn note_names<'t>(
    tool: &'t RequestTool,
    namespace: Option<&'t str>,
    seen: &mut HashSet<(Option<&'t str>, &'static str, &'t str)>,
) {
    let (kind, name) = match &tool.kind {
        RequestToolKind::Function(function) => ("tool", function.name.as_str()),
        RequestToolKind::Custom(custom) => ("tool", custom.name.as_str()),
        RequestToolKind::Namespace { name, tools, .. } => {
            for tool in tools {
                note_names(tool, Some(name), seen);
            }
            ("namespace", name.as_str())
        }
        RequestToolKind::ToolSearch { .. } => ("hosted", "tool_search"),
        RequestToolKind::Mcp(entry) => ("mcp", entry.label.as_str()),
        RequestToolKind::Hosted { tool_type, .. } => ("hosted", tool_type.as_str()),
    };
    seen.insert((namespace, kind, name));
}

impl Toolkit {
    /// The tools of a request; the same for all that have none and say nothing about any.
    pub(crate) fn of(ingredients: &Ingredients<'_>) -> Result<Arc<Self>, ApiError> {
        static NOTHING: OnceLock<Arc<Toolkit>> = OnceLock::new();
        if !ingredients.are_nothing() {
            return Self::build(ingredients).map(Arc::new);
        }
        if let Some(nothing) = NOTHING.get() {
            return Ok(Arc::clone(nothing));
        }
        // Not of this catalogue, which would be kept for ever.
        let nothing = Self::build(&Ingredients {
            snapshot: &Catalog::new().snapshot(),
            unsaid: None,
            ..*ingredients
        })?;
        let nothing = Arc::new(nothing);
        Ok(Arc::clone(NOTHING.get_or_init(|| nothing)))
    }

    fn build(ingredients: &Ingredients<'_>) -> Result<Self, ApiError> {
        let mut builder = Builder::of(ingredients)?;
        let search = builder.names.of(&Identity::Search);
        let offer = Offer {
            has_tools: !builder.tools.is_empty(),
            has_provider_tools: builder.passed.has_tools(),
            names: &builder.wire_names,
            search: (builder.search == Search::Client).then_some(search.as_str()),
            servers: &builder.servers,
            deferral: &builder.deferral,
        };
        let Lowered {
            choice,
            first,
            provider,
            allowed,
        } = lower_choice(ingredients.choice, &offer)?;
        let tools = builder.tools.iter().map(|(_, tool)| tool.clone());
        let binding = bind(ingredients.snapshot, tools, choice)?;
        let decision = Decision::of(&builder, &binding, first.as_ref(), ingredients)?;
        let search = search_tool_name(&binding).map_err(|error| refused(&error.into()))?;
        let search = search.to_string();
        let shown = match builder.search {
            Search::Server => Shown::ServerSearch,
            Search::Client | Search::Unsaid => Shown::InternalSearch,
        };
        builder.shown.entry(search.clone()).or_insert(shown);
        let search_note = match builder.search {
            Search::Client => None,
            Search::Server | Search::Unsaid => {
                let said = builder.search_description.take();
                let said: Vec<_> = said.into_iter().chain(builder.deferral.note()).collect();
                (!said.is_empty()).then(|| said.join("\n\n"))
            }
        };
        let mut loaded = builder.deferral.loaded;
        loaded.extend(ingredients.unsaid.iter().flat_map(|it| it.loaded.clone()));
        Ok(Self {
            binding,
            first_choice: first,
            shown: builder.shown,
            asking: builder.asking,
            servers: builder.servers,
            is_agentic: builder.is_agentic,
            wants_events: builder.wants_events,
            provider: builder.passed.into_options(provider, allowed),
            ignored: builder.ignored,
            defer: decision.defer,
            loaded: loaded.iter().map(|name| ToolName::import(name)).collect(),
            search_note,
            declared: Arc::new(builder.deferral.declared),
            unsaid: decision.unsaid,
            search: builder.search,
            search_name: search,
            names: builder.names,
        })
    }

    /// Whether the model can call nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.binding.is_empty() && self.first_choice.is_none()
    }

    /// Counts tools that the history calls as loaded. They may have been found by a search that the client did not
    /// see, or loaded by the call itself, and a client that keeps the conversation has no other record of it.
    pub(crate) fn load_called<'c>(&mut self, names: impl Iterator<Item = &'c str>) {
        if self.unsaid.is_none() && self.search != Search::Server {
            return;
        }
        for name in names {
            // What is not held back stays where it is.
            let mut tools = self.binding.tools_for_llm();
            let tool = tools.find(|tool| tool.name().as_str() == name);
            if let Some(tool) = tool.filter(|tool| self.is_held(tool)) {
                let name = tool.name().clone();
                self.loaded.push(name);
            }
        }
    }

    /// The tools that the first request shows.
    pub(crate) fn shown_at_first(&self) -> impl Iterator<Item = &Arc<ToolDefinition>> {
        let tools = self.binding.tools_for_llm();
        tools.filter(|tool| !self.is_held(tool))
    }

    /// The search of this server as the model sees it; none where nothing is held back.
    pub(crate) fn search_definition(&self) -> Option<Arc<ToolDefinition>> {
        let mut tools = self.binding.tools_for_llm();
        if !tools.any(|tool| self.is_deferred(tool)) {
            return None;
        }
        let search = search_tools_described(&self.search_name, self.search_note.as_deref());
        search
            .inspect_err(|error| tracing::error!(%error, "the search cannot be described"))
            .ok()
    }

    /// Those that it does not, by the name that the model would call them by.
    pub(crate) fn held_at_first(&self) -> HashSet<String> {
        let tools = self.binding.tools_for_llm();
        let held = tools.filter(|tool| self.is_held(tool));
        held.map(|tool| tool.name().to_string()).collect()
    }

    /// How many tools this server defers although the request does not ask for it, and of how many; none if it
    /// defers nothing.
    pub(crate) fn deferred_automatically(&self) -> Option<Deferred> {
        self.unsaid.as_ref()?;
        let count = self.held_at_first().len();
        (count > 0).then(|| Deferred {
            count,
            of: self.binding.len(),
            search: self.search_name.clone(),
        })
    }

    /// Whether a tool cannot be called before it is found.
    fn is_held(&self, tool: &ToolDefinition) -> bool {
        !self.loaded.contains(tool.name()) && self.is_deferred(tool)
    }

    /// Whether a tool is one that has to be found, be it by now or before.
    fn is_deferred(&self, tool: &ToolDefinition) -> bool {
        let choices = [Some(self.binding.choice()), self.first_choice.as_ref()];
        is_held_back(tool, choices, || self.defer == Defer::Always)
    }
}

/// What becomes of tools that do not say whether they are held back.
struct Decision {
    defer: Defer,
    unsaid: Option<Unsaid>,
}

impl Decision {
    fn of(
        builder: &Builder,
        binding: &Binding,
        first_choice: Option<&ToolChoice>,
        ingredients: &Ingredients<'_>,
    ) -> Result<Self, ApiError> {
        let options = ingredients.options;
        let was_made = ingredients.unsaid.as_ref().is_some_and(|it| it.all);
        let defer = match (builder.search, options.defer) {
            // Whoever brings a search along has said what it is for.
            (Search::Client | Search::Server, _) => Defer::Never,
            (Search::Unsaid, Defer::Auto) => {
                let is_too_much = was_made || {
                    let candidates = candidates(builder, binding, ingredients.snapshot)?;
                    options.defers(&candidates, ingredients.context_tokens)
                };
                if is_too_much {
                    Defer::Always
                } else {
                    Defer::Never
                }
            }
            (_, said) => said,
        };
        let choices = [Some(binding.choice()), first_choice];
        let is_held =
            |tool: &Arc<ToolDefinition>| is_held_back(tool, choices, || defer == Defer::Always);
        let is_unsaid = builder.search != Search::Server && binding.tools_for_llm().any(is_held);
        let all = options.defer == Defer::Auto && defer == Defer::Always;
        let unsaid = is_unsaid.then(|| Unsaid {
            all,
            loaded: Vec::new(),
        });
        Ok(Self { defer, unsaid })
    }
}

/// The tools that may be deferred automatically: those that this server executes and whose settings say nothing else,
/// without those that only items of the history brought, which are loaded. Only their definitions count for the
/// decision, because only they can be left out.
fn candidates(
    builder: &Builder,
    binding: &Binding,
    snapshot: &Arc<Snapshot>,
) -> Result<Binding, ApiError> {
    let is_declared = |name: &str| builder.deferral.declared.contains_key(name);
    let tools = binding.tools_for_llm();
    let names: HashSet<&str> = tools
        .filter(|tool| tool.annotations().defer == Defer::Auto)
        .map(|tool| tool.name().as_str())
        .filter(|name| is_declared(name))
        .collect();
    if names.len() == binding.len() {
        return Ok(binding.clone());
    }
    let is_candidate = |(name, _): &&(String, ToolRef)| names.contains(name.as_str());
    let tools = builder.tools.iter().filter(is_candidate);
    let tools = tools.map(|(_, tool)| tool.clone());
    bind(snapshot, tools, ToolChoice::Auto)
}

fn bind(
    snapshot: &Arc<Snapshot>,
    tools: impl Iterator<Item = ToolRef>,
    choice: ToolChoice,
) -> Result<Binding, ApiError> {
    let binding = snapshot.bind().without_tools().with_tools(tools);
    let binding = binding.tool_choice(choice).build();
    binding.map_err(|error| refused(&error))
}

impl Toolkit {
    /// A call that somebody was asked about under these names, as it runs here; none if the request
    /// has no such server or tool.
    pub(crate) fn asked_about(
        &self,
        label: &str,
        name: &str,
        arguments: &str,
    ) -> Option<HostedCall> {
        let shown = if self.is_of_server(label, name) {
            Shown::Mcp {
                server_label: label.to_owned(),
                name: name.to_owned(),
            }
        } else {
            self.hosted_type(label, name)?.clone()
        };
        shown.hosted(arguments)
    }

    /// The tool of the type `label:name`, if the request has it.
    fn hosted_type(&self, label: &str, name: &str) -> Option<&Shown> {
        let hosted = format!("{label}:{name}");
        let mut shown = self.shown.values();
        shown.find(|shown| matches!(shown, Shown::Hosted { item_type } if *item_type == hosted))
    }

    /// Whether a call under these names is one of an `mcp` entry. Calls of hosted tools are asked about under the same
    /// names.
    fn is_of_server(&self, label: &str, name: &str) -> bool {
        let is_it = |shown: &Shown| matches!(shown, Shown::Mcp { server_label, name: own } if server_label == label && own == name);
        self.servers.contains_key(label)
            && (self.hosted_type(label, name).is_none() || self.shown.values().any(is_it))
    }
}

/// In calls of the history, tools are called what the model would call them now.
impl ToolNames for Toolkit {
    fn client(&self, namespace: Option<&str>, name: &str) -> String {
        self.names.of(&Identity::client(namespace, name))
    }

    fn search(&self) -> String {
        self.names.of(&Identity::Search)
    }

    fn own_search(&self) -> String {
        self.search_name.clone()
    }

    fn found(&self, name: &str) -> String {
        let mut tools = self.binding.tools_for_llm();
        match tools.find(|tool| tool.name().as_str() == name) {
            Some(tool) => format!("{name}: {}", tool.brief()),
            None => name.to_owned(),
        }
    }

    fn mcp(&self, label: &str, name: &str) -> String {
        let is_hosted = label == OWN_LABEL || self.hosted_type(label, name).is_some();
        if is_hosted && !self.is_of_server(label, name) {
            return self.hosted(&format!("{label}:{name}"));
        }
        self.names.of(&Identity::mcp(label, name))
    }

    fn hosted(&self, item_type: &str) -> String {
        let is_it =
            |shown: &Shown| matches!(shown, Shown::Hosted { item_type: own } if own == item_type);
        let known = self.shown.iter().find(|(_, shown)| is_it(shown));
        if let Some((name, _)) = known {
            return name.clone();
        }
        let (_, name) = item_type.split_once(':').unwrap_or(("", item_type));
        self.names.of(&Identity::Hosted(name.to_owned()))
    }
}

fn refused(error: &BindError) -> ApiError {
    match error {
        BindError::ChoiceNotOffered { .. } | BindError::NothingAllowed => {
            ApiError::new(ErrorCode::ToolNotFound, error.to_string()).at("tool_choice")
        }
        _ => ApiError::new(ErrorCode::InvalidFunctionParameters, error.to_string()).at("tools"),
    }
}

/// The name of a tool as requests write it, and what it is called for the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WireName {
    Function {
        name: String,
        namespace: Option<String>,
        backend: String,
    },
    Custom {
        name: String,
        namespace: Option<String>,
        backend: String,
    },
    /// A tool of the client that waits for its search.
    Deferred {
        name: String,
        namespace: Option<String>,
    },
    Hosted {
        tool_type: String,
        /// None for one that is left out.
        backend: Option<String>,
    },
    /// A tool that goes to the model's provider as it is.
    Provider { tool_type: String },
    Mcp {
        server_label: String,
        name: String,
        backend: String,
    },
}

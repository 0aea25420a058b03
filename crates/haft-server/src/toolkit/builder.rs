//! Tools of a request become tools of the engine, one after the other.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft_catalog::Snapshot;
use haft_core::{Annotations, Owner, ToolDefinition, ToolRef};
use serde_json::{Value, json};

use super::deferral::{Declared, Deferral, Origin, Search, Within};
use super::names::{Identity, Names};
use super::provider::Passed;
use super::{Ingredients, ServerState, UnsupportedTools, WireName, freeform};
use crate::error::{ApiError, ErrorCode};
use crate::mcp::ListedServer;
use crate::stream::Shown;
use crate::wire::{CustomTool, FunctionTool, RequestTool, RequestToolKind};

/// What a tool of the client says about itself.
#[derive(Debug, Clone, Copy)]
struct Wish<'t> {
    name: &'t str,
    description: Option<&'t str>,
    is_deferred: bool,
}

/// What has become of the tools so far.
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts about one request"
)]
pub(super) struct Builder {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) owner: Owner,
    pub(super) unsupported: UnsupportedTools,
    pub(super) search: Search,
    /// What the request says about the search of this server.
    pub(super) search_description: Option<String>,
    pub(super) names: Names,
    /// By the name for the model, in the order in which the model sees them.
    pub(super) tools: Vec<(String, ToolRef)>,
    pub(super) shown: HashMap<String, Shown>,
    pub(super) wire_names: Vec<WireName>,
    pub(super) is_agentic: bool,
    pub(super) wants_events: bool,
    pub(super) ignored: Vec<String>,
    /// What goes to the model's provider in its own form.
    pub(super) passed: Passed,
    /// The tools about whose calls somebody may be asked.
    pub(super) asking: HashSet<String>,
    /// The labels of MCP servers, and what became of each.
    pub(super) servers: HashMap<String, ServerState>,
    pub(super) mcp: Vec<ListedServer>,
    /// Whether somebody is asked about calls whose arguments had to be repaired.
    pub(super) repairs: bool,
    pub(super) deferral: Deferral,
}

impl Builder {
    /// Takes in all tools of a request: those that it declares, then those that were loaded.
    pub(super) fn of(ingredients: &Ingredients<'_>) -> Result<Self, ApiError> {
        let mut builder = Self {
            snapshot: Arc::clone(ingredients.snapshot),
            owner: ingredients.owner.clone(),
            unsupported: ingredients.unsupported,
            search: Search::of_request(ingredients.tools, ingredients.loaded)?,
            search_description: None,
            names: Names::of_request(ingredients.tools),
            tools: Vec::new(),
            shown: HashMap::new(),
            wire_names: Vec::new(),
            is_agentic: false,
            wants_events: false,
            ignored: Vec::new(),
            passed: Passed::to(ingredients.provider_tools),
            asking: HashSet::new(),
            servers: HashMap::new(),
            mcp: ingredients.mcp.to_vec(),
            repairs: ingredients.options.repair,
            deferral: Deferral::default(),
        };
        for tool in ingredients.tools {
            builder.add(tool, None, Origin::Declared)?;
        }
        for tool in ingredients.loaded {
            builder.add(tool, None, Origin::Loaded)?;
        }
        builder.describe_deferred()?;
        Ok(builder)
    }

    fn add(
        &mut self,
        tool: &RequestTool,
        within: Option<Within<'_>>,
        origin: Origin,
    ) -> Result<(), ApiError> {
        match &tool.kind {
            RequestToolKind::Function(function) => {
                self.add_function(tool, function, within, origin)
            }
            RequestToolKind::Custom(custom) => self.add_custom(tool, custom, within, origin),
            RequestToolKind::Namespace {
                name,
                tools,
                defer_loading,
                description,
            } => {
                let description = description.as_deref();
                if *defer_loading && self.waits_for_client(origin) {
                    self.deferral.mention(name, description);
                    for tool in tools {
                        if let RequestToolKind::Function(FunctionTool { name: inner, .. })
                        | RequestToolKind::Custom(CustomTool { name: inner, .. }) = &tool.kind
                        {
                            self.note_deferred(inner, Some(name));
                        }
                    }
                    return Ok(());
                }
                let within = Within {
                    name,
                    description,
                    is_deferred: *defer_loading,
                };
                let mut tools = tools.iter();
                tools.try_for_each(|tool| self.add(tool, Some(within), origin))
            }
            RequestToolKind::ToolSearch {
                is_client,
                description,
                ..
            } => {
                match (*is_client, self.search) {
                    (true, Search::Client) => return self.add_search(tool),
                    (false, Search::Server) => self.search_description.clone_from(description),
                    // An earlier word, which does not hold any more.
                    _ => {}
                }
                Ok(())
            }
            RequestToolKind::Mcp(entry) => {
                self.is_agentic = true;
                if entry.defer_loading && self.waits_for_client(origin) {
                    let description = entry.description.as_deref();
                    self.deferral.mention(&entry.label, description);
                    self.servers
                        .insert(entry.label.clone(), ServerState::Deferred);
                } else {
                    self.add_server(tool, entry, origin);
                }
                Ok(())
            }
            RequestToolKind::Hosted { tool_type, config } => {
                if config.get("events") == Some(&Value::Bool(true)) {
                    self.wants_events = true;
                }
                self.add_hosted(tool, tool_type, config, origin)
            }
        }
    }

    /// Whether a deferred tool waits for the client's search.
    fn waits_for_client(&self, origin: Origin) -> bool {
        self.search == Search::Client && origin == Origin::Declared
    }

    /// Whether one that the request defers waits for the search of this server.
    pub(super) fn waits_for_server(&self, origin: Origin) -> bool {
        self.search == Search::Server && origin == Origin::Declared
    }

    /// Whether a tool that an earlier response loaded is one that the request declares: then it is loaded, and what
    /// the request says about it holds, which is the later word. What comes with the input is later still.
    fn is_declared_again(&mut self, backend: &str, tool: &RequestTool, origin: Origin) -> bool {
        let is_earlier = origin == Origin::Loaded && !tool.param.starts_with("input");
        let is_again = is_earlier && self.deferral.declared.contains_key(backend);
        if is_again {
            self.deferral.load(backend);
        }
        is_again
    }

    /// Notes what is known of a tool of the client: where it came from, and whether it is held back.
    fn note(
        &mut self,
        backend: &str,
        tool: &RequestTool,
        within: Option<Within<'_>>,
        wish: Wish<'_>,
        origin: Origin,
    ) -> Annotations {
        let is_deferred = wish.is_deferred || within.is_some_and(|within| within.is_deferred);
        if is_deferred && self.waits_for_server(origin) {
            match within {
                Some(within) => self.deferral.mention(within.name, within.description),
                None => self.deferral.mention(wish.name, wish.description),
            }
            self.deferral.by_request.insert(backend.to_owned());
        }
        let defer = self.deferral.of_client_tool(backend);
        match origin {
            Origin::Declared => {
                let tool = tool.echo.clone();
                let declared = match within {
                    None => Declared::Alone(tool),
                    Some(within) => Declared::InNamespace {
                        namespace: within.name.to_owned(),
                        description: within.description.map(str::to_owned),
                        tool,
                    },
                };
                self.deferral.declared.insert(backend.to_owned(), declared);
            }
            Origin::Loaded => self.deferral.load(backend),
        }
        Annotations {
            defer,
            // Whoever searches may write the name without its namespace.
            origin: within.map(|_| wish.name.to_owned()),
            ..Annotations::default()
        }
    }

    /// `tool_choice` may permit it, although it cannot be called yet.
    fn note_deferred(&mut self, name: &str, namespace: Option<&str>) {
        self.wire_names.push(WireName::Deferred {
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
        });
    }

    fn add_function(
        &mut self,
        tool: &RequestTool,
        function: &FunctionTool,
        within: Option<Within<'_>>,
        origin: Origin,
    ) -> Result<(), ApiError> {
        let namespace = within.map(|within| within.name);
        let wish = Wish {
            name: &function.name,
            description: function.description.as_deref(),
            is_deferred: function.defer_loading,
        };
        if wish.is_deferred && self.waits_for_client(origin) {
            self.deferral.mention(wish.name, wish.description);
            self.note_deferred(&function.name, namespace);
            return Ok(());
        }
        let backend = self.names.take(Identity::client(namespace, &function.name));
        if self.is_declared_again(&backend, tool, origin) {
            return Ok(());
        }
        let mut builder = ToolDefinition::builder(&backend)
            .parameters(function.parameters.clone())
            .annotations(self.note(&backend, tool, within, wish, origin));
        if let Some(description) = &function.description {
            builder = builder.foreign_description(description);
        }
        if function.strict {
            builder = builder.strict(true);
        }
        let definition = builder.build().map_err(|error| {
            let param = format!("{}.parameters", tool.param);
            ApiError::new(ErrorCode::InvalidFunctionParameters, error.to_string()).at(param)
        })?;
        self.note_form(&backend, &function.name, within, None);
        let namespace = namespace.map(str::to_owned);
        self.wire_names.push(WireName::Function {
            name: function.name.clone(),
            namespace: namespace.clone(),
            backend: backend.clone(),
        });
        let name = function.name.clone();
        self.put(
            backend,
            definition.into(),
            Shown::Function { name, namespace },
        );
        Ok(())
    }

    fn add_custom(
        &mut self,
        tool: &RequestTool,
        custom: &CustomTool,
        within: Option<Within<'_>>,
        origin: Origin,
    ) -> Result<(), ApiError> {
        let namespace = within.map(|within| within.name);
        let wish = Wish {
            name: &custom.name,
            description: custom.description.as_deref(),
            is_deferred: custom.defer_loading,
        };
        if wish.is_deferred && self.waits_for_client(origin) {
            self.deferral.mention(wish.name, wish.description);
            self.note_deferred(&custom.name, namespace);
            return Ok(());
        }
        let backend = self.names.take(Identity::client(namespace, &custom.name));
        if self.is_declared_again(&backend, tool, origin) {
            return Ok(());
        }
        let definition = ToolDefinition::builder(&backend)
            .foreign_description(freeform::description(custom))
            .annotations(self.note(&backend, tool, within, wish, origin))
            .parameters(freeform::parameters())
            .build()
            .map_err(|error| {
                ApiError::new(ErrorCode::InvalidValue, error.to_string()).at(&*tool.param)
            })?;
        self.note_form(&backend, &custom.name, within, Some(tool));
        let namespace = namespace.map(str::to_owned);
        self.wire_names.push(WireName::Custom {
            name: custom.name.clone(),
            namespace: namespace.clone(),
            backend: backend.clone(),
        });
        let name = custom.name.clone();
        self.put(
            backend,
            definition.into(),
            Shown::Custom { name, namespace },
        );
        Ok(())
    }

    fn add_search(&mut self, tool: &RequestTool) -> Result<(), ApiError> {
        let RequestToolKind::ToolSearch {
            description,
            parameters,
            ..
        } = &tool.kind
        else {
            return Ok(());
        };
        let parameters = parameters.clone().unwrap_or_else(|| {
            json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "What the tool should do."},
                    "limit": {"type": "integer", "description": "At most so many tools."},
                },
                "required": ["query"],
            })
        });
        let backend = self.names.take(Identity::Search);
        let description = description
            .as_deref()
            .unwrap_or("Searches for tools to load.");
        let definition = ToolDefinition::builder(&backend)
            .foreign_description(description)
            .parameters(parameters)
            .build()
            .map_err(|error| {
                let param = format!("{}.parameters", tool.param);
                ApiError::new(ErrorCode::InvalidFunctionParameters, error.to_string()).at(param)
            })?;
        self.put(backend, definition.into(), Shown::ToolSearch);
        Ok(())
    }

    /// Adds what a client's search may find to the description of the search.
    fn describe_deferred(&mut self) -> Result<(), ApiError> {
        let Some(found) = self.deferral.note() else {
            return Ok(());
        };
        for (name, tool) in &mut self.tools {
            if self.shown.get(name) != Some(&Shown::ToolSearch) {
                continue;
            }
            let ToolRef::Tool(source) = &*tool else {
                continue;
            };
            let Ok(object) = source.clone().into_object() else {
                continue;
            };
            let definition = object.definition();
            let own = definition.description().unwrap_or_default();
            let text = format!("{own}\n\n{found}");
            let schema = definition.parameters().cloned().unwrap_or_default();
            let described = ToolDefinition::builder(name.as_str())
                .foreign_description(text)
                .parameters(schema)
                .build();
            let described = described.map_err(|error| {
                ApiError::new(ErrorCode::InvalidValue, error.to_string()).at("tools")
            })?;
            *tool = described.into();
        }
        Ok(())
    }

    /// A later definition of the same name takes the place of the earlier one.
    pub(super) fn put(&mut self, backend: String, tool: ToolRef, shown: Shown) {
        self.shown.insert(backend.clone(), shown);
        match self.tools.iter_mut().find(|(name, _)| *name == backend) {
            Some(earlier) => earlier.1 = tool,
            None => self.tools.push((backend, tool)),
        }
    }
}

//! Tools of a request become tools of the engine, one after the other.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft_catalog::Snapshot;
use haft_core::{Owner, OwnersTool, ToolDefinition, ToolKind, ToolObject, ToolRef};
use serde_json::{Value, json};

use super::names::{Identity, Names};
use super::renamed::renamed;
use super::{Ingredients, ServerState, UnsupportedTools, WireName};
use crate::error::{ApiError, ErrorCode};
use crate::mcp::ListedServer;
use crate::stream::Shown;
use crate::wire::{CustomTool, FunctionTool, RequestTool, RequestToolKind};

/// The types that `OpenAI` hosts.
const HOSTED: [&str; 14] = [
    "apply_patch",
    "code_interpreter",
    "computer",
    "computer_use_preview",
    "file_search",
    "image_generation",
    "local_shell",
    "programmatic_tool_calling",
    "shell",
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
    "computer_use",
];

/// How a tool came into the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Declared,
    Loaded,
}

/// What has become of the tools so far.
pub(super) struct Builder {
    snapshot: Arc<Snapshot>,
    owner: Owner,
    unsupported: UnsupportedTools,
    pub(super) has_client_search: bool,
    pub(super) names: Names,
    /// By the name for the model, in the order in which the model sees them.
    pub(super) tools: Vec<(String, ToolRef)>,
    pub(super) shown: HashMap<String, Shown>,
    pub(super) wire_names: Vec<WireName>,
    pub(super) is_agentic: bool,
    pub(super) wants_events: bool,
    pub(super) ignored: Vec<String>,
    /// The tools about whose calls somebody may be asked.
    pub(super) asking: HashSet<String>,
    /// The labels of MCP servers, and what became of each.
    pub(super) servers: HashMap<String, ServerState>,
    pub(super) mcp: Vec<ListedServer>,
    /// Whether somebody is asked about calls whose arguments had to be repaired.
    pub(super) repairs: bool,
    /// What a client's search may find: name and description.
    deferred: Vec<(String, String)>,
}

impl Builder {
    /// Takes in all tools of a request: those that it declares, then those that were loaded.
    pub(super) fn of(ingredients: &Ingredients<'_>) -> Result<Self, ApiError> {
        let mut all = ingredients.tools.iter().chain(ingredients.loaded);
        let mut builder = Self {
            snapshot: Arc::clone(ingredients.snapshot),
            owner: ingredients.owner.clone(),
            unsupported: ingredients.unsupported,
            has_client_search: all.any(is_client_search),
            names: Names::of_request(ingredients.tools),
            tools: Vec::new(),
            shown: HashMap::new(),
            wire_names: Vec::new(),
            is_agentic: false,
            wants_events: false,
            ignored: Vec::new(),
            asking: HashSet::new(),
            servers: HashMap::new(),
            mcp: ingredients.mcp.to_vec(),
            repairs: ingredients.repairs,
            deferred: Vec::new(),
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
        namespace: Option<&str>,
        origin: Origin,
    ) -> Result<(), ApiError> {
        match &tool.kind {
            RequestToolKind::Function(function) => {
                self.add_function(tool, function, namespace, origin)
            }
            RequestToolKind::Custom(custom) => self.add_custom(tool, custom, namespace, origin),
            RequestToolKind::Namespace {
                name,
                tools,
                defer_loading,
                description,
            } => {
                if *defer_loading && self.is_held_back(origin) {
                    self.hold_back(name, description.as_deref());
                    for tool in tools {
                        if let RequestToolKind::Function(FunctionTool { name: inner, .. })
                        | RequestToolKind::Custom(CustomTool { name: inner, .. }) = &tool.kind
                        {
                            self.note_deferred(inner, Some(name));
                        }
                    }
                    return Ok(());
                }
                let mut tools = tools.iter();
                tools.try_for_each(|tool| self.add(tool, Some(name), origin))
            }
            RequestToolKind::ToolSearch { is_client, .. } => {
                // Without a search here, every deferred tool is shown from the start.
                if *is_client {
                    self.add_search(tool)
                } else {
                    Ok(())
                }
            }
            RequestToolKind::Mcp(entry) => {
                self.is_agentic = true;
                if entry.defer_loading && self.is_held_back(origin) {
                    self.hold_back(&entry.label, entry.description.as_deref());
                    self.servers
                        .insert(entry.label.clone(), ServerState::Deferred);
                } else {
                    self.add_server(&entry.label);
                }
                Ok(())
            }
            RequestToolKind::Hosted { tool_type, config } => {
                if config.get("events") == Some(&Value::Bool(true)) {
                    self.wants_events = true;
                }
                self.add_hosted(tool_type, &tool.param)
            }
        }
    }

    /// Whether a deferred tool waits for the client's search.
    fn is_held_back(&self, origin: Origin) -> bool {
        self.has_client_search && origin == Origin::Declared
    }

    /// Lets the search find a tool, or a namespace.
    fn hold_back(&mut self, name: &str, description: Option<&str>) {
        let description = description.unwrap_or_default().to_owned();
        self.deferred.push((name.to_owned(), description));
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
        namespace: Option<&str>,
        origin: Origin,
    ) -> Result<(), ApiError> {
        if function.defer_loading && self.is_held_back(origin) {
            self.hold_back(&function.name, function.description.as_deref());
            self.note_deferred(&function.name, namespace);
            return Ok(());
        }
        let backend = self.names.take(Identity::client(namespace, &function.name));
        let mut builder = ToolDefinition::builder(&backend).parameters(function.parameters.clone());
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
        namespace: Option<&str>,
        origin: Origin,
    ) -> Result<(), ApiError> {
        if custom.defer_loading && self.is_held_back(origin) {
            self.hold_back(&custom.name, custom.description.as_deref());
            self.note_deferred(&custom.name, namespace);
            return Ok(());
        }
        let backend = self.names.take(Identity::client(namespace, &custom.name));
        let definition = ToolDefinition::builder(&backend)
            .foreign_description(custom_description(custom))
            .parameters(json!({
                "type": "object",
                "properties": {
                    "input": {"type": "string", "description": "The whole input, as plain text."},
                },
                "required": ["input"],
                "additionalProperties": false,
            }))
            .build()
            .map_err(|error| {
                ApiError::new(ErrorCode::InvalidValue, error.to_string()).at(&*tool.param)
            })?;
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
        if self.deferred.is_empty() {
            return Ok(());
        }
        let lines = self.deferred.iter().map(|(name, description)| {
            if description.is_empty() {
                format!("- {name}")
            } else {
                format!("- {name}: {description}")
            }
        });
        let found = format!("\n\nIt finds:\n{}", lines.collect::<Vec<_>>().join("\n"));
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
            let text = format!("{}{found}", definition.description().unwrap_or_default());
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

    fn add_hosted(&mut self, tool_type: &str, param: &str) -> Result<(), ApiError> {
        let mut visible = visible(&self.snapshot, &self.owner);
        let found = visible.find(|tool| {
            let definition = tool.definition();
            match definition.kind() {
                ToolKind::Custom(kind) => kind.to_string() == tool_type,
                ToolKind::Mcp => false,
                // Whatever runs in this process, under haft's own slug.
                _ => {
                    let name = definition.name().as_str();
                    tool.runs_here() && tool_type.strip_prefix("haft:") == Some(name)
                }
            }
        });
        drop(visible);
        let Some(found) = found else {
            return self.leave_out(tool_type, param);
        };
        let name = found.definition().name().as_str().to_owned();
        let backend = self.names.take(Identity::Hosted(name.clone()));
        let tool = if backend == name {
            ToolRef::from(Arc::clone(&found))
        } else {
            ToolRef::from(renamed(Arc::clone(&found), &backend))
        };
        self.is_agentic = true;
        if self.may_ask(found.definition()) {
            self.asking.insert(backend.clone());
        }
        self.wire_names.push(WireName::Hosted {
            tool_type: tool_type.to_owned(),
            backend: Some(backend.clone()),
        });
        let item_type = tool_type.to_owned();
        self.put(backend, tool, Shown::Hosted { item_type });
        Ok(())
    }

    fn leave_out(&mut self, tool_type: &str, param: &str) -> Result<(), ApiError> {
        let is_web_search = tool_type.starts_with("web_search");
        let is_ignored = match self.unsupported {
            UnsupportedTools::WebSearch => is_web_search,
            UnsupportedTools::Ignore => HOSTED.contains(&tool_type) || is_web_search,
            UnsupportedTools::Reject => false,
        };
        if !is_ignored {
            return Err(self.unsupported(tool_type, param));
        }
        tracing::info!(tool_type, "a tool type that nobody provides is left out");
        self.ignored.push(tool_type.to_owned());
        self.wire_names.push(WireName::Hosted {
            tool_type: tool_type.to_owned(),
            backend: None,
        });
        Ok(())
    }

    fn unsupported(&self, tool_type: &str, param: &str) -> ApiError {
        unsupported(visible(&self.snapshot, &self.owner), tool_type, param)
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

/// The tools that an owner may see, each as it is for him.
fn visible(snapshot: &Snapshot, owner: &Owner) -> impl Iterator<Item = Arc<dyn ToolObject>> {
    snapshot
        .iter()
        .filter_map(|tool| match tool.tool().for_owner(owner) {
            OwnersTool::Same => Some(Arc::clone(tool.tool())),
            OwnersTool::Own(tool) => Some(tool),
            OwnersTool::Hidden => None,
        })
}

/// The tool that is there only if there is something to search.
const SEARCH: &str = "haft:search_files";

fn unsupported(
    provided: impl Iterator<Item = Arc<dyn ToolObject>>,
    tool_type: &str,
    param: &str,
) -> ApiError {
    let provided: Vec<_> = provided
        .filter(|tool| tool.runs_here())
        .take(12)
        .map(|tool| match tool.definition().kind() {
            ToolKind::Custom(kind) => format!("`{kind}`"),
            _ => format!("`haft:{}`", tool.definition().name()),
        })
        .collect();
    let provided = match provided.len() {
        0 => String::from("nothing is"),
        _ => format!("there is {}", provided.join(", ")),
    };
    // The same for whoever may see no folder: nobody learns which there are.
    let when = match tool_type {
        SEARCH => ", and this one only once `[search_files]` of its configuration lists folders",
        _ => "",
    };
    let message = format!(
        "no tool of type `{}` is provided here ({provided}{when}): remove it from `tools`, or declare \
         it as a `function` of your own",
        haft_core::cut(tool_type)
    );
    ApiError::new(ErrorCode::UnsupportedTool, message).at(format!("{param}.type"))
}

fn custom_description(custom: &CustomTool) -> String {
    let description = custom.description.clone().unwrap_or_default();
    match &custom.grammar {
        None => description,
        Some((syntax, definition)) => {
            format!("{description}\n\nThe input must follow this grammar ({syntax}):\n{definition}")
        }
    }
}

pub(crate) fn is_client_search(tool: &RequestTool) -> bool {
    matches!(
        tool.kind,
        RequestToolKind::ToolSearch {
            is_client: true,
            ..
        }
    )
}

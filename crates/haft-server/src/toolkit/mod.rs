//! The tools of one request: what the model may see and call, and what each is for the client
//! (`open-responses.md` §5).

mod choice;
mod names;
mod renamed;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use haft_catalog::{BindError, Binding, Snapshot};
use haft_core::{ToolDefinition, ToolKind, ToolRef};
use serde_json::{Value, json};

use crate::error::{ApiError, ErrorCode};
use crate::stream::Shown;
use crate::wire::{CustomTool, FunctionTool, RequestTool, RequestToolKind, WireChoice};

use choice::lower_choice;
use names::Names;
pub(crate) use names::backend_name;
pub(crate) use renamed::of_type;
use renamed::renamed;

/// What becomes of hosted tool types that nobody provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
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
    /// What each tool is for the client, by the name that the model calls it by.
    pub(crate) shown: HashMap<String, Shown>,
    /// Whether the request declares a tool that runs here.
    pub(crate) is_agentic: bool,
    /// Whether it asks for vendor events.
    pub(crate) wants_events: bool,
    /// The types that were left out.
    pub(crate) ignored: Vec<String>,
}

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

/// What goes into a toolkit.
pub(crate) struct Ingredients<'r> {
    pub(crate) tools: &'r [RequestTool],
    /// Tools that items of the history brought, oldest first.
    pub(crate) loaded: &'r [RequestTool],
    pub(crate) choice: &'r WireChoice,
    pub(crate) snapshot: &'r Arc<Snapshot>,
    pub(crate) unsupported: UnsupportedTools,
}

impl Toolkit {
    /// What the model calls the tool of this type, or would if it were there.
    pub(crate) fn hosted_name(&self, item_type: &str) -> String {
        let is_it =
            |shown: &Shown| matches!(shown, Shown::Hosted { item_type: own } if own == item_type);
        let known = self.shown.iter().find(|(_, shown)| is_it(shown));
        match known {
            Some((name, _)) => name.clone(),
            None => backend_name(
                None,
                item_type
                    .split_once(':')
                    .map_or(item_type, |(_, name)| name),
            ),
        }
    }

    pub(crate) fn build(ingredients: &Ingredients<'_>) -> Result<Self, ApiError> {
        let mut builder = Builder {
            snapshot: Arc::clone(ingredients.snapshot),
            unsupported: ingredients.unsupported,
            has_client_search: ingredients.tools.iter().any(is_client_search),
            names: Names::of_request(ingredients.tools),
            tools: Vec::new(),
            shown: HashMap::new(),
            wire_names: Vec::new(),
            is_agentic: false,
            wants_events: false,
            ignored: Vec::new(),
            deferred: Vec::new(),
        };
        for tool in ingredients.tools {
            builder.add(tool, None, Origin::Declared)?;
        }
        for tool in ingredients.loaded {
            builder.add(tool, None, Origin::Loaded)?;
        }
        builder.describe_deferred()?;
        let choice = lower_choice(ingredients.choice, &builder.wire_names)?;
        let tools = builder.tools.into_iter().map(|(_, tool)| tool);
        let binding = ingredients
            .snapshot
            .bind()
            .without_tools()
            .with_tools(tools);
        let binding = binding
            .tool_choice(choice)
            .build()
            .map_err(|error| refused(&error))?;
        Ok(Self {
            binding,
            shown: builder.shown,
            is_agentic: builder.is_agentic,
            wants_events: builder.wants_events,
            ignored: builder.ignored,
        })
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

fn is_client_search(tool: &RequestTool) -> bool {
    matches!(
        tool.kind,
        RequestToolKind::ToolSearch {
            is_client: true,
            ..
        }
    )
}

/// How a tool came into the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Declared,
    Loaded,
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
    Hosted {
        tool_type: String,
        /// None for one that is left out.
        backend: Option<String>,
    },
}

struct Builder {
    snapshot: Arc<Snapshot>,
    unsupported: UnsupportedTools,
    has_client_search: bool,
    names: Names,
    /// By the name for the model, in the order in which the model sees them.
    tools: Vec<(String, ToolRef)>,
    shown: HashMap<String, Shown>,
    wire_names: Vec<WireName>,
    is_agentic: bool,
    wants_events: bool,
    ignored: Vec<String>,
    /// What a client's search may find: name and description.
    deferred: Vec<(String, String)>,
}

impl Builder {
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
                    self.deferred
                        .push((name.clone(), description.clone().unwrap_or_default()));
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
            RequestToolKind::Mcp(_) => Err(unsupported("mcp", &tool.param)),
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

    fn add_function(
        &mut self,
        tool: &RequestTool,
        function: &FunctionTool,
        namespace: Option<&str>,
        origin: Origin,
    ) -> Result<(), ApiError> {
        if function.defer_loading && self.is_held_back(origin) {
            let description = function.description.clone().unwrap_or_default();
            self.deferred.push((function.name.clone(), description));
            return Ok(());
        }
        let backend = self
            .names
            .take(namespace, &function.name, origin == Origin::Loaded);
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
            let description = custom.description.clone().unwrap_or_default();
            self.deferred.push((custom.name.clone(), description));
            return Ok(());
        }
        let backend = self
            .names
            .take(namespace, &custom.name, origin == Origin::Loaded);
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
        let backend = self.names.take(None, SEARCH_NAME, false);
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
        let found = self.snapshot.iter().find(|tool| {
            let definition = tool.definition();
            match definition.kind() {
                ToolKind::Custom(kind) => kind.to_string() == tool_type,
                ToolKind::Mcp => false,
                // Whatever runs in this process, under haft's own slug.
                _ => {
                    let name = definition.name().as_str();
                    tool.tool().runs_here() && tool_type.strip_prefix("haft:") == Some(name)
                }
            }
        });
        let Some(found) = found else {
            return self.leave_out(tool_type, param);
        };
        let name = found.definition().name().as_str();
        let backend = self.names.take_hosted(name);
        let tool = if backend == name {
            ToolRef::from(Arc::clone(found.tool()))
        } else {
            ToolRef::from(renamed(Arc::clone(found.tool()), &backend))
        };
        self.is_agentic = true;
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
            return Err(unsupported(tool_type, param));
        }
        tracing::info!(tool_type, "a tool type that nobody provides is left out");
        self.ignored.push(tool_type.to_owned());
        self.wire_names.push(WireName::Hosted {
            tool_type: tool_type.to_owned(),
            backend: None,
        });
        Ok(())
    }

    /// A later definition of the same name takes the place of the earlier one.
    fn put(&mut self, backend: String, tool: ToolRef, shown: Shown) {
        self.shown.insert(backend.clone(), shown);
        match self.tools.iter_mut().find(|(name, _)| *name == backend) {
            Some(earlier) => earlier.1 = tool,
            None => self.tools.push((backend, tool)),
        }
    }
}

/// What the model calls a client's search.
pub(crate) const SEARCH_NAME: &str = "tool_search";

fn unsupported(tool_type: &str, param: &str) -> ApiError {
    let message = format!(
        "no tool of type `{tool_type}` is provided here: remove it from `tools`, or declare it as a \
         `function` of your own"
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

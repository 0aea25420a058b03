//! `tool_choice`, in the names that the model knows.

use std::collections::HashMap;

use haft_core::{AllowedMode, AllowedTools, ToolChoice};
use serde_json::{Value, json};

use super::{Deferral, ServerState, WireName};
use crate::error::{ApiError, ErrorCode};
use crate::wire::{WireChoice, WireChoiceMode, WireToolName};

/// What a choice is about.
pub(super) struct Offer<'t> {
    /// Whether the model is offered any tool.
    pub(super) has_tools: bool,
    /// Whether its provider is given tools of its own.
    pub(super) has_provider_tools: bool,
    pub(super) names: &'t [WireName],
    /// What the model calls the client's search, if there is one.
    pub(super) search: Option<&'t str>,
    /// The MCP servers by their labels.
    pub(super) servers: &'t HashMap<String, ServerState>,
    /// What is held back until this server finds it.
    pub(super) deferral: &'t Deferral,
}

/// A choice in the names that the model knows.
pub(super) struct Lowered {
    pub(super) choice: ToolChoice,
    /// What holds until a tool has run, where that is something else.
    pub(super) first: Option<ToolChoice>,
    /// What the provider is told instead, where the choice is about its own tools.
    pub(super) provider: Option<Value>,
    /// Its own tools among those that are allowed, where others are too.
    pub(super) allowed: Vec<Value>,
}

impl Lowered {
    fn to(choice: ToolChoice) -> Self {
        Self {
            choice,
            first: None,
            provider: None,
            allowed: Vec::new(),
        }
    }

    /// A choice that only the provider can follow; `choice` is what holds for all other tools.
    fn at_provider(choice: ToolChoice, provider: Value) -> Self {
        Self {
            provider: Some(provider),
            ..Self::to(choice)
        }
    }
}

pub(super) fn lower_choice(choice: &WireChoice, offer: &Offer<'_>) -> Result<Lowered, ApiError> {
    if let WireChoice::Tool(WireToolName::Mcp { server_label, name }) = choice {
        let wanted = McpWanted::new(server_label, name.as_deref());
        let mut names = wanted.names(offer, "tool_choice")?;
        let (choice, first) = if names.len() == 1 {
            (ToolChoice::Function(names.remove(0)), None)
        } else {
            let mode = AllowedMode::Required;
            let first = ToolChoice::Allowed(AllowedTools { mode, names });
            (ToolChoice::Auto, Some(first))
        };
        return Ok(Lowered {
            first,
            ..Lowered::to(choice)
        });
    }
    if offer.has_provider_tools
        && let Some(lowered) = lower_for_provider(choice, offer)?
    {
        return Ok(lowered);
    }
    lower(choice, offer).map(Lowered::to)
}

/// A choice that is about tools of the provider; none where it is about others only.
fn lower_for_provider(choice: &WireChoice, offer: &Offer<'_>) -> Result<Option<Lowered>, ApiError> {
    let is_own = |wanted: &WireToolName| {
        let WireToolName::Hosted { tool_type } = wanted else {
            return false;
        };
        let mut names = offer.names.iter();
        names.any(|name| matches!(name, WireName::Provider { tool_type: own } if own == tool_type))
    };
    Ok(match choice {
        WireChoice::Tool(wanted) if is_own(wanted) => {
            Some(Lowered::at_provider(ToolChoice::Auto, entry(wanted)))
        }
        // Without functions nothing else would tell the provider.
        WireChoice::Required if !offer.has_tools => {
            Some(Lowered::at_provider(ToolChoice::Auto, json!("required")))
        }
        WireChoice::None if !offer.has_tools => {
            Some(Lowered::at_provider(ToolChoice::Auto, json!("none")))
        }
        WireChoice::Allowed { mode, tools } if tools.iter().any(is_own) => {
            let (own, others): (Vec<_>, Vec<_>) = tools.iter().cloned().partition(is_own);
            let own: Vec<_> = own.iter().map(entry).collect();
            if *mode != WireChoiceMode::None && others.is_empty() {
                let mode = match mode {
                    WireChoiceMode::Required => "required",
                    WireChoiceMode::Auto | WireChoiceMode::None => "auto",
                };
                let choice = json!({"type": "allowed_tools", "mode": mode, "tools": own});
                let functions = if offer.has_tools {
                    ToolChoice::None
                } else {
                    ToolChoice::Auto
                };
                return Ok(Some(Lowered::at_provider(functions, choice)));
            }
            if others.is_empty() {
                return Ok(Some(Lowered::at_provider(ToolChoice::None, json!("none"))));
            }
            let others = WireChoice::Allowed {
                mode: *mode,
                tools: others,
            };
            Some(Lowered {
                allowed: own,
                ..Lowered::to(lower(&others, offer)?)
            })
        }
        _ => None,
    })
}

/// How the provider is told of one of its own tools.
fn entry(wanted: &WireToolName) -> Value {
    json!({"type": told(wanted)})
}

fn lower(choice: &WireChoice, offer: &Offer<'_>) -> Result<ToolChoice, ApiError> {
    Ok(match choice {
        WireChoice::Auto => ToolChoice::Auto,
        WireChoice::None => ToolChoice::None,
        WireChoice::Required if !offer.has_tools => {
            let message = "`tool_choice` is `required` and there are no tools: add some, or use \
                           `auto`";
            return Err(ApiError::new(ErrorCode::InvalidValue, message).at("tool_choice"));
        }
        WireChoice::Required => ToolChoice::Required,
        WireChoice::Tool(WireToolName::Hosted { tool_type }) if tool_type == "tool_search" => {
            ToolChoice::Function(demanded_search(offer)?)
        }
        WireChoice::Tool(wanted) => match find(wanted, offer.names) {
            Some(Found::Callable(name)) if !offer.deferral.is_held(name) => {
                ToolChoice::Function(name.to_owned())
            }
            Some(Found::Callable(_) | Found::Deferred) => {
                return Err(not_loaded(wanted, "tool_choice"));
            }
            None => return Err(not_found(wanted, "tool_choice")),
        },
        WireChoice::Allowed { mode, tools } => ToolChoice::Allowed(AllowedTools {
            mode: match mode {
                WireChoiceMode::Auto => AllowedMode::Auto,
                WireChoiceMode::Required => AllowedMode::Required,
                WireChoiceMode::None => AllowedMode::None,
            },
            names: allowed(tools, offer)?,
        }),
    })
}

/// What the model calls the client's search, which somebody demands. That of this server is no end in itself.
fn demanded_search(offer: &Offer<'_>) -> Result<String, ApiError> {
    let search = offer.search.map(str::to_owned);
    search.ok_or_else(|| {
        let message = "`tool_choice` demands `tool_search`, which only a search of the client can be: use \
                       `required` or `auto`, or add `tool_search` with `execution` `client`";
        ApiError::new(ErrorCode::InvalidValue, message).at("tool_choice")
    })
}

/// The names of permitted tools. Whoever may call a tool that is still deferred may search for it.
fn allowed(tools: &[WireToolName], offer: &Offer<'_>) -> Result<Vec<String>, ApiError> {
    let mut names: Vec<String> = Vec::new();
    let mut unavailable = None;
    for (at, wanted) in tools.iter().enumerate() {
        if let WireToolName::Mcp { server_label, name } = wanted {
            let param = format!("tool_choice.tools[{at}]");
            let wanted = McpWanted::new(server_label, name.as_deref());
            match wanted.names(offer, &param) {
                Ok(found) => {
                    for name in found {
                        push_new(&mut names, &name);
                    }
                }
                // One that is down costs only itself, as long as something else is permitted.
                Err(error) if error.code == ErrorCode::McpServerUnavailable => {
                    unavailable = Some(error);
                }
                Err(error) => return Err(error),
            }
            continue;
        }
        let name = match find(wanted, offer.names) {
            Some(Found::Callable(name)) => Some(name),
            Some(Found::Deferred) => offer.search,
            None => return Err(not_found(wanted, &format!("tool_choice.tools[{at}]"))),
        };
        if let Some(name) = name {
            push_new(&mut names, name);
        }
    }
    match unavailable.filter(|_| names.is_empty()) {
        Some(error) => Err(error),
        None => Ok(names),
    }
}

fn push_new(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

/// Tools of an MCP server: one, or all that it has.
struct McpWanted<'w> {
    label: &'w str,
    name: Option<&'w str>,
}

impl<'w> McpWanted<'w> {
    fn new(label: &'w str, name: Option<&'w str>) -> Self {
        Self { label, name }
    }

    /// What the model calls them; never nothing.
    fn names(&self, offer: &Offer<'_>, param: &str) -> Result<Vec<String>, ApiError> {
        if let Some(ServerState::Unavailable(problem)) = offer.servers.get(self.label) {
            let message = format!(
                "`tool_choice` names the MCP server `{}`, which cannot be used now: {problem}",
                self.label
            );
            let error = ApiError::new(ErrorCode::McpServerUnavailable, message);
            return Err(error.at("tool_choice"));
        }
        if offer.servers.get(self.label) == Some(&ServerState::Deferred)
            && param != "tool_choice"
            && let Some(search) = offer.search
        {
            // Whoever may call a tool that is still deferred may search for it.
            return Ok(vec![search.to_owned()]);
        }
        let names = offer.names.iter().filter_map(|tool| match tool {
            WireName::Mcp {
                server_label,
                name,
                backend,
            } if server_label == self.label && self.name.is_none_or(|own| own == name) => {
                Some(backend.clone())
            }
            _ => None,
        });
        let mut found = Vec::new();
        names.for_each(|name: String| push_new(&mut found, &name));
        let mut names = found;
        let is_known = !names.is_empty();
        if param == "tool_choice" {
            // What has to be called cannot be searched for first; what may be called can.
            names.retain(|name| !offer.deferral.is_held(name));
        }
        if names.is_empty() {
            let wanted = WireToolName::Mcp {
                server_label: self.label.to_owned(),
                name: self.name.map(str::to_owned),
            };
            return Err(if is_known {
                not_loaded(&wanted, param)
            } else {
                not_found(&wanted, param)
            });
        }
        Ok(names)
    }
}

enum Found<'t> {
    /// Under this name.
    Callable(&'t str),
    /// Not before it is loaded.
    Deferred,
}

/// The latest tool of this name.
fn find<'t>(wanted: &WireToolName, tools: &'t [WireName]) -> Option<Found<'t>> {
    tools.iter().rev().find_map(|tool| match (wanted, tool) {
        (
            WireToolName::Function { name, namespace },
            WireName::Function {
                name: own,
                namespace: place,
                backend,
            },
        ) if name == own && namespace == place => Some(Found::Callable(backend)),
        (
            WireToolName::Custom { name },
            WireName::Custom {
                name: own, backend, ..
            },
        ) if name == own => Some(Found::Callable(backend)),
        (
            WireToolName::Function { name, namespace },
            WireName::Deferred {
                name: own,
                namespace: place,
            },
        ) if name == own && namespace == place => Some(Found::Deferred),
        (WireToolName::Custom { name }, WireName::Deferred { name: own, .. }) if name == own => {
            Some(Found::Deferred)
        }
        (
            WireToolName::Hosted { tool_type },
            WireName::Hosted {
                tool_type: own,
                backend: Some(backend),
            },
        ) if tool_type == own => Some(Found::Callable(backend)),
        _ => None,
    })
}

fn not_found(wanted: &WireToolName, param: &str) -> ApiError {
    let message = format!(
        "`tool_choice` names `{}`, which is not among the tools of this request: add it to `tools`, or \
         name another",
        told(wanted)
    );
    ApiError::new(ErrorCode::ToolNotFound, message).at(param)
}

fn not_loaded(wanted: &WireToolName, param: &str) -> ApiError {
    let message = format!(
        "`tool_choice` names `{}`, which is deferred and not loaded yet: leave `defer_loading` out, or \
         name another",
        told(wanted)
    );
    ApiError::new(ErrorCode::ToolNotFound, message).at(param)
}

fn told(wanted: &WireToolName) -> &str {
    match wanted {
        WireToolName::Function { name, .. } | WireToolName::Custom { name } => name.as_str(),
        WireToolName::Mcp {
            server_label,
            name: None,
        } => server_label,
        WireToolName::Mcp {
            name: Some(name), ..
        } => name,
        WireToolName::Hosted { tool_type } => tool_type,
    }
}

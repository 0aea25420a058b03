//! `tool_choice`, in the names that the model knows.

use haft_core::{AllowedMode, AllowedTools, ToolChoice};

use super::WireName;
use crate::error::{ApiError, ErrorCode};
use crate::wire::{WireChoice, WireChoiceMode, WireToolName};

/// What a choice is about.
pub(super) struct Offer<'t> {
    /// Whether the model is offered any tool.
    pub(super) has_tools: bool,
    pub(super) names: &'t [WireName],
    /// What the model calls the client's search, if there is one.
    pub(super) search: Option<&'t str>,
}

pub(super) fn lower_choice(choice: &WireChoice, offer: &Offer<'_>) -> Result<ToolChoice, ApiError> {
    Ok(match choice {
        WireChoice::Auto => ToolChoice::Auto,
        WireChoice::None => ToolChoice::None,
        WireChoice::Required if !offer.has_tools => {
            let message = "`tool_choice` is `required` and there are no tools: add some, or use \
                           `auto`";
            return Err(ApiError::new(ErrorCode::InvalidValue, message).at("tool_choice"));
        }
        WireChoice::Required => ToolChoice::Required,
        WireChoice::Tool(wanted) => match find(wanted, offer.names) {
            Some(Found::Callable(name)) => ToolChoice::Function(name.to_owned()),
            Some(Found::Deferred) | None => return Err(not_found(wanted, "tool_choice")),
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

/// The names of permitted tools. Whoever may call a tool that is still deferred may search for it.
fn allowed(tools: &[WireToolName], offer: &Offer<'_>) -> Result<Vec<String>, ApiError> {
    let mut names: Vec<String> = Vec::new();
    for (at, wanted) in tools.iter().enumerate() {
        let name = match find(wanted, offer.names) {
            Some(Found::Callable(name)) => Some(name),
            Some(Found::Deferred) => offer.search,
            None => return Err(not_found(wanted, &format!("tool_choice.tools[{at}]"))),
        };
        if let Some(name) = name
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
    }
    Ok(names)
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
    let told = match wanted {
        WireToolName::Function { name, .. } | WireToolName::Custom { name } => name.as_str(),
        WireToolName::Mcp { server_label, .. } => server_label,
        WireToolName::Hosted { tool_type } => tool_type,
    };
    let message = format!(
        "`tool_choice` names `{told}`, which is not among the tools of this request: add it to \
         `tools`, or name another"
    );
    ApiError::new(ErrorCode::ToolNotFound, message).at(param)
}

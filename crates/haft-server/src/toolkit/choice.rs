//! `tool_choice`, in the names that the model knows.

use haft_core::{AllowedMode, AllowedTools, ToolChoice};

use super::WireName;
use crate::error::{ApiError, ErrorCode};
use crate::wire::{WireChoice, WireChoiceMode, WireToolName};

pub(super) fn lower_choice(
    choice: &WireChoice,
    tools: &[WireName],
) -> Result<ToolChoice, ApiError> {
    Ok(match choice {
        WireChoice::Auto => ToolChoice::Auto,
        WireChoice::None => ToolChoice::None,
        WireChoice::Required if tools.is_empty() => {
            let message = "`tool_choice` is `required` and there are no tools: add some, or use \
                           `auto`";
            return Err(ApiError::new(ErrorCode::InvalidValue, message).at("tool_choice"));
        }
        WireChoice::Required => ToolChoice::Required,
        WireChoice::Tool(name) => ToolChoice::Function(find(name, tools, "tool_choice")?),
        WireChoice::Allowed { mode, tools: names } => {
            let mut allowed = Vec::new();
            for (at, name) in names.iter().enumerate() {
                allowed.push(find(name, tools, &format!("tool_choice.tools[{at}]"))?);
            }
            ToolChoice::Allowed(AllowedTools {
                mode: match mode {
                    WireChoiceMode::Auto => AllowedMode::Auto,
                    WireChoiceMode::Required => AllowedMode::Required,
                    WireChoiceMode::None => AllowedMode::None,
                },
                names: allowed,
            })
        }
    })
}

fn find(wanted: &WireToolName, tools: &[WireName], param: &str) -> Result<String, ApiError> {
    let found = tools.iter().rev().find_map(|tool| match (wanted, tool) {
        (
            WireToolName::Function { name, namespace },
            WireName::Function {
                name: own,
                namespace: place,
                backend,
            },
        ) if name == own && namespace == place => Some(backend.clone()),
        (
            WireToolName::Custom { name },
            WireName::Custom {
                name: own, backend, ..
            },
        ) if name == own => Some(backend.clone()),
        (
            WireToolName::Hosted { tool_type },
            WireName::Hosted {
                tool_type: own,
                backend,
            },
        ) if tool_type == own => backend.clone(),
        _ => None,
    });
    found.ok_or_else(|| {
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
    })
}

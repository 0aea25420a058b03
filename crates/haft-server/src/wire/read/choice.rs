//! `tool_choice` (`open-responses.md` §5.2, §5.3).

use haft_core::cut;
use serde_json::{Value, json};

use super::fields::{Fields, invalid, missing, wrong_type};
use super::forms::{Form as _, ListOf, Text, Word};
use super::tools::is_hosted;
use super::{Read, Vocabulary};
use crate::error::{ApiError, ErrorCode};
use crate::wire::request::{
    RequestTool, RequestToolKind, WireChoice, WireChoiceMode, WireToolName,
};

/// How many tools a list of allowed ones may name.
const MAX_ALLOWED: usize = 128;

impl WireChoice {
    /// Reads a choice and says how it is echoed.
    pub(super) fn read(value: Value, path: &str, words: &Vocabulary<'_>) -> Read<(Self, Value)> {
        match &value {
            Value::String(_) => {
                let word = Word(&["auto", "none", "required"]).read(value, path)?;
                let choice = match word {
                    "none" => Self::None,
                    "required" => Self::Required,
                    _ => Self::Auto,
                };
                Ok((choice, word.into()))
            }
            Value::Object(members) if members.get("type") == Some(&json!("allowed_tools")) => {
                allowed(Fields::of(value, path)?, words)
            }
            Value::Object(_) => {
                let (name, echo) = tool_name(value, path, words)?;
                Ok((Self::Tool(name), echo))
            }
            _ => Err(wrong_type(path, "a string or an object", &value)),
        }
    }

    /// Checks the choice against the tools of a request that nothing else can add to.
    pub(super) fn check_against(&self, tools: &[RequestTool]) -> Read<()> {
        // What is deferred may be permitted before it is loaded, but not demanded.
        let is_forced = matches!(self, Self::Tool(_));
        validate_choice(self, |name| match standing_in(tools, name) {
            Some(Standing::Callable) => true,
            Some(Standing::Deferred) => !is_forced,
            None => false,
        })
    }
}

/// Refuses a choice that names a tool which is not known.
pub(crate) fn validate_choice(
    choice: &WireChoice,
    known: impl Fn(&WireToolName) -> bool,
) -> Read<()> {
    let names = match choice {
        WireChoice::Auto | WireChoice::None | WireChoice::Required => return Ok(()),
        WireChoice::Tool(name) => std::slice::from_ref(name),
        WireChoice::Allowed { tools, .. } => tools,
    };
    match names.iter().find(|name| !known(name)) {
        None => Ok(()),
        Some(name) => Err(not_found(&shown(name))),
    }
}

/// Whether a tool that is known can be called at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Callable,
    /// It must be loaded first.
    Deferred,
}

/// How the tool of this name stands among `tools`; none if it is not there.
///
/// Of an MCP server only the label is known before it was asked, so any tool of it counts.
pub(crate) fn standing_in(tools: &[RequestTool], name: &WireToolName) -> Option<Standing> {
    tools.iter().find_map(|tool| standing(tool, None, name))
}

fn standing(
    tool: &RequestTool,
    inside: Option<(&str, bool)>,
    wanted: &WireToolName,
) -> Option<Standing> {
    let (is_it, is_deferred) = match (&tool.kind, wanted) {
        (RequestToolKind::Function(function), WireToolName::Function { name, namespace }) => {
            let is_here = namespace.as_deref() == inside.map(|(name, _)| name);
            (is_here && *name == function.name, function.defer_loading)
        }
        (RequestToolKind::Custom(custom), WireToolName::Custom { name }) => {
            (*name == custom.name, custom.defer_loading)
        }
        (
            RequestToolKind::Namespace {
                name,
                defer_loading,
                tools,
                ..
            },
            _,
        ) => {
            let inside = Some((name.as_str(), *defer_loading));
            return tools.iter().find_map(|tool| standing(tool, inside, wanted));
        }
        (RequestToolKind::Mcp(entry), WireToolName::Mcp { server_label, .. }) => {
            (entry.label == *server_label, entry.defer_loading)
        }
        (RequestToolKind::ToolSearch { .. }, WireToolName::Hosted { tool_type }) => {
            (tool_type == "tool_search", false)
        }
        (RequestToolKind::Hosted { tool_type, .. }, WireToolName::Hosted { tool_type: wanted }) => {
            (tool_type == wanted, false)
        }
        _ => return None,
    };
    let is_deferred = is_deferred || inside.is_some_and(|(_, is_deferred)| is_deferred);
    is_it.then_some(if is_deferred {
        Standing::Deferred
    } else {
        Standing::Callable
    })
}

fn not_found(what: &str) -> ApiError {
    ApiError::new(
        ErrorCode::ToolNotFound,
        format!(
            "`tool_choice` names {what}, but there is no such tool to call: add it to `tools`, \
             load it first if it is deferred, or choose another"
        ),
    )
    .at("tool_choice")
}

fn shown(name: &WireToolName) -> String {
    match name {
        WireToolName::Function {
            name,
            namespace: Some(namespace),
        } => format!("the function `{}` of `{}`", cut(name), cut(namespace)),
        WireToolName::Function { name, .. } => format!("the function `{}`", cut(name)),
        WireToolName::Custom { name } => format!("the custom tool `{}`", cut(name)),
        WireToolName::Mcp { server_label, .. } => format!("the MCP server `{}`", cut(server_label)),
        WireToolName::Hosted { tool_type } => format!("`{}`", cut(tool_type)),
    }
}

fn allowed(mut fields: Fields, words: &Vocabulary<'_>) -> Read<(WireChoice, Value)> {
    let mode = fields.get("mode", Word(&["auto", "required", "none"]))?;
    let mode = mode.unwrap_or("auto");
    let at = fields.at("tools");
    let form = ListOf(|value: Value, path: &str| tool_name(value, path, words));
    let (tools, echo): (Vec<_>, Vec<_>) = fields.need("tools", form)?.into_iter().unzip();
    if !(1..=MAX_ALLOWED).contains(&tools.len()) {
        return Err(invalid(
            &at,
            format!(
                "`{at}` names {} tools: name 1 to {MAX_ALLOWED}",
                tools.len()
            ),
        ));
    }
    let choice = WireChoice::Allowed {
        mode: match mode {
            "required" => WireChoiceMode::Required,
            "none" => WireChoiceMode::None,
            _ => WireChoiceMode::Auto,
        },
        tools,
    };
    let echo = json!({"type": "allowed_tools", "mode": mode, "tools": echo});
    Ok((choice, echo))
}

fn tool_name(value: Value, path: &str, words: &Vocabulary<'_>) -> Read<(WireToolName, Value)> {
    let mut fields = Fields::of(value, path)?;
    let at = fields.at("type");
    let tool_type = fields.need("type", Text)?;
    let name = match tool_type.as_str() {
        "function" => WireToolName::Function {
            name: named(&mut fields)?,
            namespace: fields.get("namespace", Text)?,
        },
        "custom" => WireToolName::Custom {
            name: named(&mut fields)?,
        },
        "mcp" => WireToolName::Mcp {
            server_label: fields.need("server_label", Text)?,
            name: fields.get("name", Text)?,
        },
        "namespace" => {
            let name = fields.get("name", Text)?.unwrap_or_default();
            return Err(not_found(&format!("the whole namespace `{}`", cut(&name))));
        }
        hosted => {
            let bare = hosted.strip_prefix("openai:").unwrap_or(hosted);
            if bare != "tool_search" && !is_hosted(bare) && !words.knows(hosted) {
                return Err(invalid(
                    &at,
                    format!(
                        "`{at}` is `{}`, which is no type of tool: use that of a tool in `tools`",
                        cut(hosted)
                    ),
                ));
            }
            WireToolName::Hosted {
                tool_type: bare.to_owned(),
            }
        }
    };
    let echo = echo(&name, &tool_type);
    Ok((name, echo))
}

fn named(fields: &mut Fields) -> Read<String> {
    let at = fields.at("name");
    fields
        .get("name", Text)?
        .ok_or_else(|| missing(&at, "name the tool beside its `type`"))
}

/// The name as the client spelt it.
fn echo(name: &WireToolName, tool_type: &str) -> Value {
    let mut echo = json!({"type": tool_type});
    let mut put = |key: &str, text: Option<&String>| {
        if let Some(text) = text {
            echo[key] = text.as_str().into();
        }
    };
    match name {
        WireToolName::Function { name, namespace } => {
            put("name", Some(name));
            put("namespace", namespace.as_ref());
        }
        WireToolName::Custom { name } => put("name", Some(name)),
        WireToolName::Mcp { server_label, name } => {
            put("server_label", Some(server_label));
            put("name", name.as_ref());
        }
        WireToolName::Hosted { .. } => {}
    }
    echo
}

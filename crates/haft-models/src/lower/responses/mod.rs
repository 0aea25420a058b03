//! Requests to a Responses server.
//!
//! What comes in: a turn as the engine has it, whose items are in this API's form already. What
//! goes out: the bytes of one request, `input` behind everything else, so that of two requests of
//! one conversation the later one repeats the earlier one. Nothing is sent that was not asked for.

mod items;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use haft_core::{
    AllowedMode, AllowedTools, Capabilities, ForcedChoice, ModelError, ModelErrorKind,
    ModelRequest, RenderKey, Streaming, ToolChoice,
};
use serde_json::{Map, Value, json};

use super::body::BodyWriter;
use super::schema::Profile;
use super::tools::{RenderedTools, ToolForm, joined, render_tools};

pub use items::ThoughtsBack;

/// How tools are shown. `strict` is always said: this API takes silence for `true`.
const FORM: ToolForm = ToolForm {
    key: RenderKey::new("responses:tool"),
    profile: Profile::Openai,
    strict_profile: Profile::OpenaiStrict,
    write: |tool| {
        let mut json = Map::new();
        json.insert("type".into(), "function".into());
        json.insert("name".into(), tool.definition.name().as_str().into());
        if let Some(description) = tool.description {
            json.insert("description".into(), description.into());
        }
        json.insert("parameters".into(), tool.schema.clone());
        json.insert("strict".into(), tool.strict.into());
        Value::Object(json)
    },
};

/// The same for servers that follow no schema strictly.
const LENIENT_FORM: ToolForm = ToolForm {
    key: RenderKey::new("responses:lenient-tool"),
    profile: Profile::Generic,
    strict_profile: Profile::Generic,
    write: FORM.write,
};

/// What an adapter knows beside the request.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) model: String,
    pub(crate) capabilities: Capabilities,
    /// Whether the provider keeps the response.
    pub(crate) store: bool,
    /// Whether sealed thoughts are asked for even where no effort is.
    pub(crate) sealed_thoughts: bool,
    pub(crate) thoughts_back: ThoughtsBack,
    /// Members of every request.
    pub(crate) extra: Map<String, Value>,
}

/// A request in bytes, and the tools that it shows.
pub(crate) struct Lowered {
    pub(crate) body: Bytes,
    pub(crate) tools: Arc<RenderedTools>,
}

/// Writes a request.
pub(crate) fn lower(request: &ModelRequest, settings: &Settings) -> Result<Lowered, ModelError> {
    let capabilities = &settings.capabilities;
    let form = if capabilities.strict_schemas {
        &FORM
    } else {
        &LENIENT_FORM
    };
    let tools = render_tools(&request.tools, form);
    let calling = Calling::of(request.tool_choice.as_ref(), &tools, capabilities)?;
    let options = &request.options;
    let effort = options.reasoning_effort.as_deref();

    let mut body = BodyWriter::new([&settings.extra, &options.extra]);
    body.member("model", &settings.model);
    if options.stream == Streaming::Pieces {
        body.member("stream", true);
    }
    body.member("store", settings.store);
    let thinks = settings.sealed_thoughts || effort.is_some_and(|effort| effort != "none");
    if thinks && !settings.store {
        body.member("include", ["reasoning.encrypted_content"]);
    }
    body.optional("max_output_tokens", options.max_output_tokens);
    body.optional("temperature", options.temperature);
    body.optional("top_p", options.top_p);
    body.optional("reasoning", effort.map(|effort| json!({"effort": effort})));
    if let Some(format) = &request.output_format {
        let format = json!({
            "type": "json_schema",
            "name": format.name,
            "schema": *format.schema,
            "strict": format.strict,
        });
        body.member("text", json!({"format": format}));
    }
    body.optional("instructions", request.instructions.as_deref());
    if !calling.tools.is_empty() {
        body.raw("tools", &calling.tools);
        body.optional("tool_choice", calling.choice);
        body.optional("parallel_tool_calls", request.parallel_tool_calls);
    }
    let items = request.conversation.entries().iter().map(|entry| {
        let thoughts = settings.thoughts_back;
        let render = || items::render(entry.item(), thoughts);
        entry.rendered().get(thoughts.key(), render)
    });
    let items: Vec<_> = items.collect();
    let sent = items
        .iter()
        .filter_map(|item| Some(item.as_deref()?.as_bytes()));
    body.list("input", sent);
    Ok(Lowered {
        body: body.finish(),
        tools,
    })
}

/// Which tools are shown, and what is said about calling them.
struct Calling {
    tools: Bytes,
    choice: Option<Value>,
}

impl Calling {
    fn of(
        choice: Option<&ToolChoice>,
        tools: &RenderedTools,
        capabilities: &Capabilities,
    ) -> Result<Self, ModelError> {
        let all = |choice: Option<Value>| Self {
            tools: tools.json().clone(),
            choice,
        };
        let Some(choice) = choice else {
            return Ok(all(None));
        };
        let choice = match choice {
            ToolChoice::Allowed(allowed) if allowed.mode == AllowedMode::None => {
                Cow::Owned(ToolChoice::None)
            }
            // A tool that could not be shown cannot be allowed either.
            ToolChoice::Allowed(allowed) => {
                let shown = |name: &&String| tools.tool(name).is_some();
                let names: Vec<_> = allowed.names.iter().filter(shown).cloned().collect();
                let mode = allowed.mode;
                match names.as_slice() {
                    [] => Cow::Owned(ToolChoice::None),
                    _ => Cow::Owned(ToolChoice::Allowed(AllowedTools { mode, names })),
                }
            }
            other => Cow::Borrowed(other),
        };
        let said = json!(choice);
        match (&*choice, capabilities.forced_choice) {
            (_, ForcedChoice::Unsupported) => Ok(match &*choice {
                ToolChoice::None => Self::nothing(),
                _ => all(None),
            }),
            (ToolChoice::None, _) if !capabilities.none_choice => Ok(Self::nothing()),
            (ToolChoice::Function(name), forced) => {
                let tool = tools.tool(name).ok_or_else(|| not_shown(name, tools))?;
                Ok(match forced {
                    ForcedChoice::Named => all(Some(said)),
                    _ => Self {
                        tools: joined(std::slice::from_ref(tool)),
                        choice: Some(json!("required")),
                    },
                })
            }
            // A server that cannot be told one name knows no list of them; the loop sees to it.
            (ToolChoice::Allowed(allowed), ForcedChoice::OnlyTool) => Ok(match allowed.mode {
                AllowedMode::Required => all(Some(json!("required"))),
                _ => all(Some(json!("auto"))),
            }),
            _ => Ok(all(Some(said))),
        }
    }

    fn nothing() -> Self {
        Self {
            tools: Bytes::new(),
            choice: None,
        }
    }
}

fn not_shown(name: &str, tools: &RenderedTools) -> ModelError {
    let reason = tools.left_out().iter().find(|tool| tool.name == name);
    let reason = reason.map_or_else(
        || format!("tool `{name}` is to be called and not among the tools: add it"),
        ToString::to_string,
    );
    ModelError::new(ModelErrorKind::InvalidRequest, reason)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

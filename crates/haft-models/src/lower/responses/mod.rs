//! Requests to a Responses server.
//!
//! What comes in: a turn as the engine has it, whose items are in this API's form already. What
//! goes out: the bytes of one request, `input` behind everything else, so that of two requests of
//! one conversation the later one repeats the earlier one. Nothing is sent that was not asked for.

mod items;
mod native;

use std::sync::Arc;

use bytes::Bytes;
use haft_core::{
    AllowedMode, Capabilities, ForcedChoice, Loading, ModelError, ModelOptions, ModelRequest,
    RenderKey, Streaming, ToolChoice,
};
use serde_json::{Map, Value, json};

use super::answer::answer_schema;
use super::body::BodyWriter;
use super::offer::{Choice, offer};
use super::schema::Profile;
use super::tools::{RenderedTools, ToolForm, render_tools};
use super::wishes::{JsonObject, given, instructions, leave_out};

pub use items::ThoughtsBack;
pub(crate) use items::unsupported;

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
        if tool.loading == Loading::Searched {
            json.insert("defer_loading".into(), true.into());
        }
        Value::Object(json)
    },
};

/// The provider's own search, for the tools that it holds back.
const SEARCH_TOOL: &str = r#"{"type":"tool_search"}"#;

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

/// The tools of a request as this API is shown them.
pub(crate) fn tools(request: &ModelRequest, settings: &Settings) -> Arc<RenderedTools> {
    let is_strict = settings.capabilities.strict_schemas;
    render_tools(
        &request.tools,
        if is_strict { &FORM } else { &LENIENT_FORM },
    )
}

/// The options that this API has no member for.
pub(crate) fn ignored(options: &ModelOptions) -> Vec<&'static str> {
    given(options, &["presence_penalty", "frequency_penalty"])
}

/// Writes a request.
pub(crate) fn lower(request: &ModelRequest, settings: &Settings) -> Result<Lowered, ModelError> {
    let capabilities = &settings.capabilities;
    let tools = tools(request, settings);
    let options = &request.options;
    let provider = &options.provider;
    let (shown, choice) = calling(request, &tools, capabilities)?;
    let effort = options.reasoning_effort.as_deref();

    let mut body = BodyWriter::new([&settings.extra, &options.extra]);
    body.member("model", &settings.model);
    if options.stream == Streaming::Pieces {
        body.member("stream", true);
    }
    body.member("store", settings.store);
    let summary = options.reasoning_summary.as_deref();
    let thinks = match effort {
        Some(effort) => effort != "none",
        None => summary.is_some(),
    };
    let sealed = (settings.sealed_thoughts || thinks) && !settings.store;
    let include: Vec<_> = [
        sealed.then_some("reasoning.encrypted_content"),
        options.top_logprobs.map(|_| "message.output_text.logprobs"),
    ]
    .into_iter()
    .flatten()
    .chain(provider.include.iter().map(String::as_str))
    .collect();
    body.optional("include", (!include.is_empty()).then_some(include));
    body.optional("max_output_tokens", options.max_output_tokens);
    body.optional("max_tool_calls", provider.max_calls);
    body.optional("temperature", options.temperature);
    body.optional("top_p", options.top_p);
    body.optional("top_logprobs", options.top_logprobs);
    body.optional("service_tier", options.service_tier.as_deref());
    body.optional("safety_identifier", options.safety_identifier.as_deref());
    body.optional("prompt_cache_key", options.prompt_cache_key.as_deref());
    leave_out("responses", &ignored(options));
    body.optional(
        "reasoning",
        object([("effort", effort), ("summary", summary)]),
    );
    let json = JsonObject::of(request, capabilities, !shown.is_empty());
    let format = match &request.output_format {
        Some(format) => {
            let answer = answer_schema(format, capabilities.strict_schemas);
            Some(json!({
                "type": "json_schema",
                "name": format.name,
                "schema": answer.schema,
                "strict": answer.is_strict,
            }))
        }
        None => (json == JsonObject::Member).then(|| json!({"type": "json_object"})),
    };
    let verbosity = options.verbosity.as_deref().map(Value::from);
    body.optional(
        "text",
        object([("format", format), ("verbosity", verbosity)]),
    );
    body.optional("instructions", instructions(request, json));
    if !shown.is_empty() {
        body.raw("tools", &shown);
        body.optional("tool_choice", choice);
        body.optional("parallel_tool_calls", request.parallel_tool_calls);
    }
    let custom_calls = native::custom_calls(&request.conversation, provider);
    let items = request.conversation.entries().iter().map(|entry| {
        let thoughts = settings.thoughts_back;
        if let Some(native) = items::native(entry.item(), provider, &custom_calls, capabilities) {
            // Its form depends on the tools of the request as well, so it is not cached.
            return Arc::new(Ok(Some(native)));
        }
        let render = || items::render(entry.item(), thoughts, capabilities);
        entry.rendered().get(thoughts.key(capabilities), render)
    });
    let items: Vec<_> = items.collect();
    let mut sent = Vec::with_capacity(items.len());
    for item in &items {
        match &**item {
            Ok(Some(json)) => sent.push(json.as_bytes()),
            Ok(None) => {}
            Err(unsupported) => return Err(unsupported.clone().into()),
        }
    }
    body.list("input", sent);
    Ok(Lowered {
        body: body.finish(),
        tools,
    })
}

/// An object of the members that have a value; none if none has.
fn object<V: Into<Value>, const N: usize>(members: [(&str, Option<V>); N]) -> Option<Value> {
    let members = members.into_iter();
    let members: Map<_, _> = members
        .filter_map(|(key, value)| Some((key.to_owned(), value?.into())))
        .collect();
    (!members.is_empty()).then_some(Value::Object(members))
}

/// The tools of a request and what is said about calling them. This API knows lists of allowed tools itself;
/// everything else is lowered by what the server can do.
fn calling(
    request: &ModelRequest,
    tools: &RenderedTools,
    capabilities: &Capabilities,
) -> Result<(Bytes, Option<Value>), ModelError> {
    let provider = &request.options.provider;
    let (shown, choice) = functions(request, tools, capabilities)?;
    // Where nothing may be called and the server does not keep to that, no tool is shown.
    let is_withheld = shown.is_empty() && !tools.json().is_empty();
    let list = native::tool_list(&shown, tools, provider, !is_withheld);
    Ok((list, provider.choice.clone().or(choice)))
}

/// The tools other than the provider's own, and what is said about calling them.
fn functions(
    request: &ModelRequest,
    tools: &RenderedTools,
    capabilities: &Capabilities,
) -> Result<(Bytes, Option<Value>), ModelError> {
    let provider = &request.options.provider;
    let choice = request.tool_choice.as_ref();
    if let Some(ToolChoice::Allowed(allowed)) = choice
        && allowed.mode != AllowedMode::None
        && capabilities.forced_choice == ForcedChoice::Named
    {
        // A tool that could not be shown cannot be allowed either.
        let names = allowed.names.iter();
        let names = names.filter(|name| tools.tool(name).is_some());
        let names = names.map(|name| native::named(name, provider));
        let names: Vec<_> = names.chain(provider.allowed.iter().cloned()).collect();
        if !names.is_empty() {
            let choice = json!({"type": "allowed_tools", "mode": allowed.mode, "tools": names});
            return Ok((tools.json().clone(), Some(choice)));
        }
    }
    let offer = offer(choice, tools, capabilities)?;
    let choice = offer.choice.map(|choice| match choice {
        Choice::Auto => json!("auto"),
        Choice::Required => json!("required"),
        Choice::None => json!("none"),
        Choice::Named(name) => native::named(name, provider),
    });
    Ok((offer.tools, choice))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

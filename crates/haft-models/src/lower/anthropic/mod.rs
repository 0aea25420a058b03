//! Requests to the Messages API.
//!
//! What comes in: a turn as the engine has it. What goes out: the bytes of one request, `messages`
//! behind everything else, so that of two requests of one conversation the later one repeats the
//! earlier one but for the marks that tell the provider how far to cache.

mod blocks;
mod media;
mod output_schema;
mod references;
mod thinking;
mod turns;

use std::sync::Arc;

use bytes::Bytes;
use haft_core::{Capabilities, ModelError, ModelOptions, ModelRequest, RenderKey, Streaming};
use serde_json::{Map, Value, json};

use super::body::BodyWriter;
use super::offer::{Choice, offer};
use super::schema::Profile;
use super::tools::{RenderedTools, ToolForm, render_tools};
use super::wishes::{JSON_ONLY, given, leave_out};
use blocks::Block;
use references::SEARCH_TOOL;
use turns::Turns;

pub(crate) use blocks::unsupported;
pub use thinking::Thinking;

/// How tools are shown.
const FORM: ToolForm = ToolForm {
    key: RenderKey::new("anthropic:tool"),
    profile: Profile::Anthropic,
    strict_profile: Profile::Anthropic,
    write: |tool| {
        let mut json = Map::new();
        json.insert("name".into(), tool.definition.name().as_str().into());
        if let Some(description) = tool.description {
            json.insert("description".into(), description.into());
        }
        json.insert("input_schema".into(), tool.schema.clone());
        if tool.loading.is_deferred() {
            json.insert("defer_loading".into(), true.into());
        }
        Value::Object(json)
    },
};

/// Put at the end of a block, says that everything up to here is to be cached.
const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}}"#;

/// The options that this API has no member for.
const UNSUPPORTED: [&str; 6] = [
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "verbosity",
    "prompt_cache_key",
    "reasoning_summary",
];

/// What an adapter knows beside the request.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) model: String,
    pub(crate) capabilities: Capabilities,
    /// The limit of answers for requests that name none; this API must be given one.
    pub(crate) max_tokens: u64,
    pub(crate) caching: bool,
    pub(crate) thinking: Thinking,
    /// Members of every request.
    pub(crate) extra: Map<String, Value>,
}

/// A request in bytes, and the tools that it shows.
pub(crate) struct Lowered {
    pub(crate) body: Bytes,
    pub(crate) tools: Arc<RenderedTools>,
}

/// The tools of a request as this API is shown them.
pub(crate) fn tools(request: &ModelRequest) -> Arc<RenderedTools> {
    render_tools(&request.tools, &FORM)
}

/// Writes a request.
pub(crate) fn lower(request: &ModelRequest, settings: &Settings) -> Result<Lowered, ModelError> {
    let tools = tools(request);
    let mut turns = Turns::of(request, &settings.capabilities, &tools)?;
    if request.options.json_object && request.output_format.is_none() {
        turns.tell(JSON_ONLY);
    }
    let options = &request.options;
    let (shown, choice) = calling(request, &tools, &settings.capabilities)?;
    let is_forced = choice
        .as_ref()
        .is_some_and(|choice| choice["type"] == "any" || choice["type"] == "tool");
    let effort = settings.thinking.lower(
        options.reasoning_effort.as_deref(),
        is_forced,
        options.max_output_tokens,
        settings.max_tokens,
    );
    let mut output_config = Map::new();
    if let Some(effort) = effort.effort {
        output_config.insert("effort".into(), effort.into());
    }
    if let Some(format) = &request.output_format {
        let schema = output_schema::lower(&format.schema);
        let format = json!({"type": "json_schema", "schema": schema});
        output_config.insert("format".into(), format);
    }

    let mut body = BodyWriter::new([&settings.extra, &options.extra]);
    body.member("model", &settings.model);
    body.member("max_tokens", effort.max_tokens);
    if options.stream == Streaming::Pieces {
        body.member("stream", true);
    }
    // A model that thinks takes no wishes about how it chooses its words.
    let thinks = effort.thinking.is_some();
    body.optional("temperature", options.temperature.filter(|_| !thinks));
    body.optional("top_p", options.top_p.filter(|_| !thinks));
    body.optional("thinking", effort.thinking);
    body.optional(
        "service_tier",
        options.service_tier.as_deref().and_then(service_tier),
    );
    let user = options.safety_identifier.as_deref();
    body.optional("metadata", user.map(|user| json!({"user_id": user})));
    leave_out("anthropic", &ignored(options, settings));
    body.optional(
        "output_config",
        (!output_config.is_empty()).then_some(output_config),
    );
    if !shown.is_empty() {
        let mut shown = tools.searchable(shown, SEARCH_TOOL);
        if settings.caching {
            shown = marked(&shown, &tools);
        }
        body.raw("tools", &shown);
        body.optional("tool_choice", choice);
    }
    if !turns.system.is_empty() {
        let mut list = Vec::new();
        let blocks = turns.system.iter().filter_map(|block| block.block());
        write_blocks(&mut list, blocks, settings.caching);
        body.raw("system", &list);
    }
    body.raw("messages", &messages(&turns, settings.caching));
    Ok(Lowered {
        body: body.finish(),
        tools,
    })
}

/// The options that are not sent.
pub(crate) fn ignored(options: &ModelOptions, settings: &Settings) -> Vec<&'static str> {
    let mut ignored = given(options, &UNSUPPORTED);
    let tier = options.service_tier.as_deref();
    if tier.is_some_and(|tier| service_tier(tier).is_none()) {
        ignored.push("service_tier");
    }
    let effort = options.reasoning_effort.as_deref();
    let thought = settings.thinking.lower(
        effort,
        false,
        options.max_output_tokens,
        settings.max_tokens,
    );
    // A model that thinks takes neither.
    if thought.thinking.is_some() {
        ignored.extend(given(options, &["temperature", "top_p"]));
    }
    ignored
}

/// How urgent it is, in this API's two words: what was paid for in advance may be used, or not.
fn service_tier(tier: &str) -> Option<&'static str> {
    match tier {
        "auto" | "priority" => Some("auto"),
        "default" | "standard" | "standard_only" => Some("standard_only"),
        _ => None,
    }
}

/// A list that is JSON already, marked at the last tool that is part of what is cached: those that are
/// held back are not, and the provider refuses a mark there.
fn marked(list: &Bytes, tools: &RenderedTools) -> Bytes {
    let held = tools.tools().iter().rev();
    let held = held.take_while(|tool| tool.loading().is_deferred());
    // Each with the comma before it. A list of one tool that must be called is none of these.
    let behind: usize = held.map(|tool| tool.json().len() + 1).sum();
    let is_whole = list.len() >= tools.json().len();
    let end = list
        .len()
        .saturating_sub(1 + if is_whole { behind } else { 0 });
    let (shown, rest) = list.split_at(end);
    match shown.strip_suffix(b"}") {
        Some(open) => [open, MARK, rest].concat().into(),
        None => list.clone(),
    }
}

fn messages(turns: &Turns, is_marked: bool) -> Vec<u8> {
    let mut out = vec![b'['];
    for (place, turn) in turns.messages.iter().enumerate() {
        let is_last = place + 1 == turns.messages.len();
        out.extend_from_slice(if place > 0 { b"," } else { b"" });
        let role = if turn.is_user { "user" } else { "assistant" };
        out.extend_from_slice(format!(r#"{{"role":"{role}","content":"#).as_bytes());
        write_blocks(&mut out, turn.blocks(), is_marked && is_last);
        out.push(b'}');
    }
    out.push(b']');
    out
}

/// Writes a list of blocks. The mark stands on the last one that may bear it: a thought may not.
fn write_blocks<'b>(out: &mut Vec<u8>, blocks: impl Iterator<Item = &'b Block>, is_marked: bool) {
    let blocks: Vec<_> = blocks.collect();
    let bearer = blocks
        .iter()
        .rposition(|block| is_marked && block.takes_mark);
    out.push(b'[');
    for (place, block) in blocks.into_iter().enumerate() {
        out.extend_from_slice(if place > 0 { b"," } else { b"" });
        let json = block.json.as_bytes();
        match json.strip_suffix(b"}") {
            Some(open) if bearer == Some(place) => {
                out.extend_from_slice(open);
                out.extend_from_slice(MARK);
            }
            _ => out.extend_from_slice(json),
        }
    }
    out.push(b']');
}

/// What is said about calling tools. This API knows no list of allowed tools: the loop sees to
/// that one, and the tools stay as they are.
fn calling(
    request: &ModelRequest,
    tools: &RenderedTools,
    capabilities: &Capabilities,
) -> Result<(Bytes, Option<Value>), ModelError> {
    let offer = offer(request.tool_choice.as_ref(), tools, capabilities)?;
    let mut choice = offer.choice.map(|choice| match choice {
        Choice::Auto => json!({"type": "auto"}),
        Choice::Required => json!({"type": "any"}),
        Choice::None => json!({"type": "none"}),
        Choice::Named(name) => json!({"type": "tool", "name": name}),
    });
    if request.parallel_tool_calls == Some(false) {
        let choice = choice.get_or_insert_with(|| json!({"type": "auto"}));
        if choice["type"] != "none" {
            choice["disable_parallel_tool_use"] = true.into();
        }
    }
    Ok((offer.tools, choice))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

//! Requests of Chat Completions.

mod pieces;

use std::sync::Arc;

use bytes::Bytes;
use haft_core::{Capabilities, ModelError, ModelOptions, ModelRequest, RenderKey, Streaming};
use serde_json::{Map, Value, json};

use super::answer::answer_schema;
use super::body::{BodyWriter, json as to_json};
use super::offer::{Choice, offer};
use super::schema::Profile;
use super::tools::{RenderedTools, Shown, ToolForm, render_tools};
use super::turns::{Step, Turn, steps};
use super::wishes::{JsonObject, given, instructions, leave_out};
pub(crate) use pieces::unsupported;
use pieces::{Piece, piece};
pub(super) use pieces::{as_text, object_or_empty};

use crate::reasoning_field::ReasoningMember;

/// What a request depends on beside itself.
#[derive(Debug)]
pub(crate) struct ChatForm<'f> {
    pub(crate) model: &'f str,
    pub(crate) capabilities: Capabilities,
    pub(crate) developer_role: bool,
    pub(crate) stream_usage: bool,
    pub(crate) max_tokens_member: &'static str,
    /// Whether the server knows the members that came from `OpenAI` late.
    pub(crate) openai_members: bool,
    pub(crate) profile: Profile,
    /// Where reasoning goes back.
    pub(crate) reasoning: ReasoningMember,
    pub(crate) extra: &'f Map<String, Value>,
}

/// The body of a request, and the tools that it shows.
pub(crate) fn request(
    request: &ModelRequest,
    form: &ChatForm<'_>,
) -> Result<(Bytes, Arc<RenderedTools>), ModelError> {
    let tools = tools(request, form);
    let offer = offer(request.tool_choice.as_ref(), &tools, &form.capabilities)?;
    let options = &request.options;
    let mut body = BodyWriter::new([form.extra, &options.extra]);
    body.member("model", form.model);
    let json = JsonObject::of(request, &form.capabilities, !offer.tools.is_empty());
    body.list("messages", messages(request, json, form)?);
    if !offer.tools.is_empty() {
        body.raw("tools", &offer.tools);
        body.optional("tool_choice", offer.choice.map(choice));
        if form.capabilities.parallel_calls {
            body.optional("parallel_tool_calls", request.parallel_tool_calls);
        }
    }
    if form.capabilities.structured_output {
        body.optional("response_format", response_format(request, form));
    }
    if json == JsonObject::Member {
        body.member("response_format", json!({"type": "json_object"}));
    }
    body.optional(form.max_tokens_member, options.max_output_tokens);
    body.optional("temperature", options.temperature);
    body.optional("top_p", options.top_p);
    body.optional("presence_penalty", options.presence_penalty);
    body.optional("frequency_penalty", options.frequency_penalty);
    if options.top_logprobs.is_some() {
        body.member("logprobs", true);
    }
    body.optional("top_logprobs", options.top_logprobs);
    body.optional("reasoning_effort", options.reasoning_effort.as_deref());
    if form.openai_members {
        body.optional("verbosity", options.verbosity.as_deref());
        body.optional("service_tier", options.service_tier.as_deref());
        body.optional("safety_identifier", options.safety_identifier.as_deref());
        body.optional("prompt_cache_key", options.prompt_cache_key.as_deref());
    }
    leave_out("chat", &ignored(options, form.openai_members));
    if options.stream == Streaming::Pieces {
        body.member("stream", true);
        if form.stream_usage {
            body.member("stream_options", json!({"include_usage": true}));
        }
    }
    Ok((body.finish(), tools))
}

/// The options that a server is not sent; `openai_members` as in [`ChatForm`].
pub(crate) fn ignored(options: &ModelOptions, openai_members: bool) -> Vec<&'static str> {
    const LATE: [&str; 4] = [
        "verbosity",
        "service_tier",
        "safety_identifier",
        "prompt_cache_key",
    ];
    let mut ignored = given(options, &["reasoning_summary"]);
    if !openai_members {
        ignored.extend(given(options, &LATE));
    }
    ignored
}

/// The tools of a request as this server wants them.
pub(crate) fn tools(request: &ModelRequest, form: &ChatForm<'_>) -> Arc<RenderedTools> {
    let strict = form.capabilities.strict_schemas;
    let is_openai = form.profile == Profile::Openai;
    let form = ToolForm {
        key: RenderKey::new("chat tools").variant(u64::from(strict) + 2 * u64::from(is_openai)),
        profile: form.profile,
        strict_profile: if strict {
            Profile::OpenaiStrict
        } else {
            form.profile
        },
        write: write_tool,
    };
    render_tools(&request.tools, &form)
}

/// One tool, nested; `strict` only where it is meant and possible.
pub(super) fn write_tool(tool: &Shown<'_>) -> Value {
    let mut function = Map::new();
    function.insert("name".into(), tool.definition.name().as_str().into());
    if let Some(description) = tool.description {
        function.insert("description".into(), description.into());
    }
    function.insert("parameters".into(), tool.schema.clone());
    if tool.strict {
        function.insert("strict".into(), true.into());
    }
    json!({"type": "function", "function": function})
}

fn choice(choice: Choice<'_>) -> Value {
    match choice {
        Choice::Auto => json!("auto"),
        Choice::Required => json!("required"),
        Choice::None => json!("none"),
        Choice::Named(name) => json!({"type": "function", "function": {"name": name}}),
    }
}

fn response_format(request: &ModelRequest, form: &ChatForm<'_>) -> Option<Value> {
    let format = request.output_format.as_ref()?;
    let answer = answer_schema(format, form.capabilities.strict_schemas);
    let mut schema = json!({"name": format.name, "schema": answer.schema});
    if answer.is_strict {
        schema["strict"] = true.into();
    }
    Some(json!({"type": "json_schema", "json_schema": schema}))
}

fn messages(
    request: &ModelRequest,
    json: JsonObject,
    form: &ChatForm<'_>,
) -> Result<Vec<Vec<u8>>, ModelError> {
    let mut messages = Vec::new();
    if let Some(instructions) = instructions(request, json) {
        let role = host_role(form);
        messages.push(to_json(&json!({"role": role, "content": instructions})));
    }
    for step in steps(&request.conversation) {
        match step {
            Step::Said(entry) => match &*piece(entry, form) {
                Piece::Message(json) => messages.push(json.clone()),
                Piece::Refused(unsupported) => return Err(unsupported.clone().into()),
                _ => {}
            },
            Step::Turn(turn) => add_turn(&turn, form, &mut messages),
        }
    }
    Ok(messages)
}

fn host_role(form: &ChatForm<'_>) -> &'static str {
    if form.developer_role {
        "developer"
    } else {
        "system"
    }
}

/// One assistant message with all its calls, then one tool message for each.
fn add_turn(turn: &Turn<'_>, form: &ChatForm<'_>, messages: &mut Vec<Vec<u8>>) {
    let mut text: Vec<u8> = Vec::new();
    let mut thoughts: Vec<u8> = Vec::new();
    let mut field = "";
    let mut calls: Vec<u8> = Vec::new();
    for entry in &turn.items {
        match &*piece(entry, form) {
            Piece::Text(piece) => append(&mut text, piece, br"\n\n"),
            Piece::Reasoning(given, piece) => {
                if let Some(member) = form.reasoning.resolve(*given) {
                    field = member;
                    append(&mut thoughts, piece, br"\n\n");
                }
            }
            Piece::Call(piece) => append(&mut calls, piece, b","),
            _ => {}
        }
    }
    if !text.is_empty() || !calls.is_empty() {
        let mut message = br#"{"role":"assistant","content":"#.to_vec();
        if text.is_empty() {
            message.extend_from_slice(b"null");
        } else {
            message.extend([b"\"", text.as_slice(), b"\""].concat());
        }
        // Thoughts belong to the calls that they led to; elsewhere servers drop or refuse them.
        if !thoughts.is_empty() && !calls.is_empty() {
            let name = to_json(field);
            message.extend([b",", name.as_slice(), b":\"", &thoughts, b"\""].concat());
        }
        if !calls.is_empty() {
            message.extend([br#","tool_calls":["#, calls.as_slice(), b"]"].concat());
        }
        message.push(b'}');
        messages.push(message);
    }
    let mut media: Vec<u8> = Vec::new();
    for entry in &turn.outputs {
        if let Piece::Output {
            message,
            media: more,
        } = &*piece(entry, form)
        {
            messages.push(message.clone());
            if !more.is_empty() {
                append(&mut media, more, b",");
            }
        }
    }
    // A tool message holds only text; images and files follow in the user's name.
    if !media.is_empty() {
        messages.push([br#"{"role":"user","content":["#, media.as_slice(), b"]}"].concat());
    }
}

fn append(list: &mut Vec<u8>, piece: &[u8], between: &[u8]) {
    if !list.is_empty() {
        list.extend_from_slice(between);
    }
    list.extend_from_slice(piece);
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::{Conversation, Item};
    use std::cell::Cell;

    thread_local! {
        pub(super) static RENDERED: Cell<usize> = const { Cell::new(0) };
    }

    /// R14, R20
    #[test]
    fn each_item_is_rendered_once_over_all_turns_and_the_prefix_stays() {
        let extra = Map::new();
        let form = ChatForm {
            model: "m",
            capabilities: Capabilities::default(),
            developer_role: false,
            stream_usage: false,
            max_tokens_member: "max_tokens",
            openai_members: false,
            profile: Profile::Generic,
            reasoning: ReasoningMember::default(),
            extra: &extra,
        };
        let mut conversation = Conversation::from("hi");
        let mut last: Vec<u8> = Vec::new();
        for turn in 0..50 {
            let id = format!("call_{turn}");
            conversation.push(Item::function_call(&id, "ping", "{}"));
            conversation.push(Item::function_call_output(&id, "pong"));
            let asked = ModelRequest {
                conversation: conversation.clone(),
                ..ModelRequest::default()
            };
            let (body, _) = request(&asked, &form).unwrap();
            let messages = last.len().saturating_sub(b"],\"stream\":true}".len());
            assert!(
                body.starts_with(&last[..messages]),
                "turn {turn} only appends"
            );
            last = body.to_vec();
        }
        assert_eq!(RENDERED.with(Cell::get), 101);
    }
}

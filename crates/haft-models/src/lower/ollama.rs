//! Requests of Ollama's own chat.

use std::sync::Arc;

use bytes::Bytes;
use haft_core::{
    CallOutput, Capabilities, ContentPart, Entry, FunctionCall, Item, Message, ModelError,
    ModelOptions, ModelRequest, Reasoning, RenderKey, Role, Streaming, UnsupportedContent,
};
use serde_json::{Map, Value, json};

use super::body::{BodyWriter, json as to_json};
use super::chat::{as_text, object_or_empty, write_tool};
use super::input::{self, Input, embedded};
use super::offer::offer;
use super::schema::Profile;
use super::tools::{RenderedTools, ToolForm, render_tools};
use super::turns::{self, Step, Turn, steps};
use super::wishes::{JsonObject, given, instructions, leave_out};

const TOOLS: ToolForm = ToolForm {
    key: RenderKey::new("ollama tools"),
    profile: Profile::Generic,
    strict_profile: Profile::Generic,
    write: write_tool,
};

/// The options that Ollama has no member for.
const UNSUPPORTED: [&str; 5] = [
    "verbosity",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "reasoning_summary",
];

/// What a request depends on beside itself.
#[derive(Debug)]
pub(crate) struct OllamaForm<'f> {
    pub(crate) model: &'f str,
    pub(crate) capabilities: Capabilities,
    pub(crate) extra: &'f Map<String, Value>,
}

/// The body of a request, and the tools that it shows.
pub(crate) fn request(
    request: &ModelRequest,
    form: &OllamaForm<'_>,
) -> Result<(Bytes, Arc<RenderedTools>), ModelError> {
    let tools = tools(request);
    let offer = offer(request.tool_choice.as_ref(), &tools, &form.capabilities)?;
    let mut always = form.extra.clone();
    let mut asked = request.options.extra.clone();
    let given = [always.remove("options"), asked.remove("options")];
    let mut body = BodyWriter::new([&always, &asked]);
    body.member("model", form.model);
    let json = JsonObject::of(request, &form.capabilities, !offer.tools.is_empty());
    body.list("messages", messages(request, json, form)?);
    if !offer.tools.is_empty() {
        body.raw("tools", &offer.tools);
    }
    if let Some(format) = &request.output_format
        && form.capabilities.structured_output
    {
        body.member("format", &*format.schema);
    }
    if json == JsonObject::Member {
        body.member("format", "json");
    }
    if request.options.top_logprobs.is_some() {
        body.member("logprobs", true);
    }
    body.optional("top_logprobs", request.options.top_logprobs);
    leave_out("ollama", &ignored(&request.options));
    body.optional(
        "think",
        request.options.reasoning_effort.as_deref().map(think),
    );
    let options = options(&request.options, &form.capabilities, given);
    if !options.is_empty() {
        body.member("options", options);
    }
    // Pieces are the default here, so both are said.
    body.member("stream", request.options.stream == Streaming::Pieces);
    Ok((body.finish(), tools))
}

/// The options that Ollama is not sent.
pub(crate) fn ignored(options: &ModelOptions) -> Vec<&'static str> {
    given(options, &UNSUPPORTED)
}

/// The tools of a request as Ollama wants them.
pub(crate) fn tools(request: &ModelRequest) -> Arc<RenderedTools> {
    render_tools(&request.tools, &TOOLS)
}

/// How much to think: a switch, or a word for the models that know it.
fn think(effort: &str) -> Value {
    match effort {
        "none" | "off" | "false" => Value::Bool(false),
        "on" | "true" => Value::Bool(true),
        other => other.into(),
    }
}

fn options(
    asked: &ModelOptions,
    capabilities: &Capabilities,
    given: [Option<Value>; 2],
) -> Map<String, Value> {
    let mut options = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            options.insert(name.to_owned(), value);
        }
    };
    // Ollama's own default is low, and what does not fit is cut off without a word.
    set("num_ctx", capabilities.context_tokens.map(Value::from));
    set("num_predict", asked.max_output_tokens.map(Value::from));
    set("temperature", asked.temperature.map(Value::from));
    set("top_p", asked.top_p.map(Value::from));
    set("presence_penalty", asked.presence_penalty.map(Value::from));
    set(
        "frequency_penalty",
        asked.frequency_penalty.map(Value::from),
    );
    for given in given.into_iter().flatten() {
        if let Value::Object(given) = given {
            options.extend(given);
        }
    }
    options
}

fn messages(
    request: &ModelRequest,
    json: JsonObject,
    form: &OllamaForm<'_>,
) -> Result<Vec<Vec<u8>>, ModelError> {
    let mut messages = Vec::new();
    if let Some(instructions) = instructions(request, json) {
        messages.push(to_json(&json!({"role": "system", "content": instructions})));
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

fn add_turn(turn: &Turn<'_>, form: &OllamaForm<'_>, messages: &mut Vec<Vec<u8>>) {
    let mut content = String::new();
    let mut thinking = String::new();
    let mut calls = Vec::new();
    for entry in &turn.items {
        match &*piece(entry, form) {
            Piece::Text(text) => append(&mut content, text),
            Piece::Thinking(text) => append(&mut thinking, text),
            Piece::Call(json) => calls.push(json.clone()),
            _ => {}
        }
    }
    if !content.is_empty() || !calls.is_empty() {
        let mut message = BodyWriter::new([]);
        message.member("role", "assistant");
        message.member("content", &content);
        if !thinking.is_empty() {
            message.member("thinking", &thinking);
        }
        if !calls.is_empty() {
            message.list("tool_calls", calls);
        }
        messages.push(message.finish().into());
    }
    for entry in &turn.outputs {
        if let Item::FunctionCallOutput(output) = entry.item()
            && let Piece::Output { content, images } = &*piece(entry, form)
        {
            let mut message = BodyWriter::new([]);
            message.member("role", "tool");
            // Outputs are known by the tool's name: there are no ids.
            message.optional("tool_name", name_of(turn, &output.call_id));
            message.raw("content", content);
            if !images.is_empty() {
                message.member("images", images);
            }
            messages.push(message.finish().into());
        }
    }
}

fn append(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(more);
}

fn name_of<'t>(turn: &'t Turn<'_>, call_id: &str) -> Option<&'t str> {
    turn.items.iter().find_map(|entry| match entry.item() {
        Item::FunctionCall(call) if call.call_id == call_id => Some(call.name.as_str()),
        _ => None,
    })
}

/// What an item adds to a request.
#[derive(Debug)]
enum Piece {
    /// A whole message.
    Message(Vec<u8>),
    Text(String),
    Thinking(String),
    /// An entry of `tool_calls`.
    Call(Vec<u8>),
    /// The content of a tool message as JSON, and its images.
    Output {
        content: Vec<u8>,
        images: Vec<String>,
    },
    /// A part of it has no place.
    Refused(UnsupportedContent),
    Nothing,
}

fn piece(entry: &Entry, form: &OllamaForm<'_>) -> Arc<Piece> {
    let capabilities = &form.capabilities;
    let key = RenderKey::new("ollama").variant(input::variant(capabilities));
    entry.rendered().get(key, || match entry.item() {
        Item::Message(message) if message.role == Role::Assistant => {
            let texts: Vec<_> = message.content.iter().map(as_text).collect();
            Piece::Text(texts.join("\n"))
        }
        Item::Message(message) => match unsupported(entry.item(), capabilities) {
            Some(refused) => Piece::Refused(refused),
            None => said(message, capabilities),
        },
        Item::FunctionCall(call) => Piece::Call(tool_call(call)),
        Item::FunctionCallOutput(output) => {
            let (texts, images) = match &output.output {
                CallOutput::Text(text) => (vec![text.clone()], Vec::new()),
                CallOutput::Parts(parts) => {
                    let text = |part| match image(part, capabilities) {
                        Some(_) => String::from("[image]"),
                        None => as_text(part),
                    };
                    let texts = parts.iter().map(text).collect();
                    (texts, images(parts, capabilities))
                }
            };
            Piece::Output {
                content: to_json(&texts.join("\n\n")),
                images,
            }
        }
        Item::Reasoning(reasoning) => thinking(reasoning),
        _ => {
            turns::leave_out(entry);
            Piece::Nothing
        }
    })
}

/// The first part of an item that Ollama has no place for.
pub(crate) fn unsupported(item: &Item, capabilities: &Capabilities) -> Option<UnsupportedContent> {
    input::unsupported(item, capabilities, objection)
}

fn objection(input: &Input<'_>) -> Option<&'static str> {
    match input {
        Input::Image { url: Some(url), .. } if embedded(url).is_some() => None,
        Input::Image { .. } => Some(
            "Ollama takes the bytes of an image only: give them in a `data:` address, in base64",
        ),
        Input::File(_) => Some("Ollama takes no files"),
        Input::Video { .. } => Some("Ollama takes no videos"),
        Input::Text(_) | Input::Unknown => None,
    }
}

fn said(message: &Message, capabilities: &Capabilities) -> Piece {
    let role = if message.role == Role::User {
        "user"
    } else {
        "system"
    };
    let texts = message.content.iter();
    let texts = texts.filter(|part| image(part, capabilities).is_none());
    let texts: Vec<_> = texts.map(as_text).collect();
    let mut json = json!({"role": role, "content": texts.join("\n")});
    let images = images(&message.content, capabilities);
    if !images.is_empty() {
        json["images"] = json!(images);
    }
    Piece::Message(to_json(&json))
}

fn images(parts: &[ContentPart], capabilities: &Capabilities) -> Vec<String> {
    let images = parts.iter().filter_map(|part| image(part, capabilities));
    images.map(str::to_owned).collect()
}

/// The bytes of an image, in base64: an address is never taken.
fn image<'p>(part: &'p ContentPart, capabilities: &Capabilities) -> Option<&'p str> {
    match Input::of(part) {
        Input::Image { url: Some(url), .. } if capabilities.image_input => {
            embedded(url).map(|(_, bytes)| bytes)
        }
        _ => None,
    }
}

/// Arguments go back as an object. What is none was answered with an error already.
fn tool_call(call: &FunctionCall) -> Vec<u8> {
    let mut function = BodyWriter::new([]);
    function.member("name", &call.name);
    function.raw("arguments", object_or_empty(&call.arguments).as_bytes());
    let mut json = BodyWriter::new([]);
    json.raw("function", &function.finish());
    json.finish().into()
}

/// Reasoning goes back as text. What another provider signed or encrypted stays behind.
fn thinking(reasoning: &Reasoning) -> Piece {
    let text = reasoning.text();
    if text.is_empty() || reasoning.is_encrypted() {
        return Piece::Nothing;
    }
    Piece::Thinking(text)
}

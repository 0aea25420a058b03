//! Content as the conventions want it in attributes: JSON texts of messages with parts.

use haft_core::{CallOutput, ContentPart, Conversation, Item, Role};
use serde_json::{Value, json};

/// So much of one text goes along.
const MAX_TEXT: usize = 16 * 1024;

/// So many of the last messages go along.
const MAX_MESSAGES: usize = 64;

/// The instructions of a request.
pub(super) fn instructions(text: &str) -> String {
    json!([text_part(text)]).to_string()
}

/// The messages of a conversation, the last of them if there are many.
pub(super) fn messages(conversation: &Conversation) -> String {
    let skipped = conversation.len().saturating_sub(MAX_MESSAGES);
    let items = conversation.items().skip(skipped);
    let messages = items.filter_map(|item| {
        let parts = parts(item);
        (!parts.is_empty()).then(|| json!({"role": role(item), "parts": parts}))
    });
    Value::Array(messages.collect()).to_string()
}

/// One answer: its parts and why the model stopped.
pub(super) fn answer(parts: &[Value], finish: Option<&str>) -> String {
    let mut message = json!({"role": "assistant", "parts": parts});
    message["finish_reason"] = finish.unwrap_or("error").into();
    json!([message]).to_string()
}

/// What came of a call.
pub(super) fn output(output: &CallOutput) -> String {
    cut(&output.to_text()).to_owned()
}

pub(super) fn parts(item: &Item) -> Vec<Value> {
    match item {
        Item::Message(message) => message.content.iter().map(content_part).collect(),
        Item::Reasoning(reasoning) => {
            let thoughts = reasoning.content.iter().chain(&reasoning.summary);
            let thoughts = thoughts.filter_map(ContentPart::text);
            thoughts
                .map(|text| json!({"type": "reasoning", "content": cut(text)}))
                .collect()
        }
        Item::FunctionCall(call) => vec![json!({
            "type": "tool_call",
            "id": call.call_id,
            "name": call.name,
            "arguments": arguments(&call.arguments),
        })],
        Item::FunctionCallOutput(output) => vec![json!({
            "type": "tool_call_response",
            "id": output.call_id,
            "response": cut(&output.output.to_text()),
        })],
        _ => Vec::new(),
    }
}

/// Arguments as JSON where they are, else as the text that they are.
fn arguments(text: &str) -> Value {
    let text = cut(text);
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

fn content_part(part: &ContentPart) -> Value {
    match part.text() {
        Some(text) => text_part(text),
        // Images and files are told of, not sent.
        None => json!({"type": "omitted"}),
    }
}

fn text_part(text: &str) -> Value {
    json!({"type": "text", "content": cut(text)})
}

fn role(item: &Item) -> &'static str {
    match item {
        Item::Message(message) => match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            _ => "system",
        },
        Item::FunctionCallOutput(_) => "tool",
        _ => "assistant",
    }
}

/// The beginning of a text.
pub(super) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

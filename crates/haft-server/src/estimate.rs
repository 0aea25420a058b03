//! How many tokens a context has, roughly: no tokenizer is at hand, and every model has its own.
//!
//! Text counts by its bytes, media by the piece: the bytes of an image say nothing about what it
//! costs. What only its provider can read, such as encrypted reasoning, counts nothing.

use std::sync::Arc;

use haft_core::{CallOutput, ContentPart, Conversation, Item, ToolDefinition};
use serde_json::{Map, Value};

/// Bytes per token of usual text.
const BYTES_PER_TOKEN: u64 = 4;

/// What an item costs besides its content.
const PER_ITEM: u64 = 4;

/// What media cost, each: in the middle of what providers take.
const IMAGE: u64 = 1000;
const SMALL_IMAGE: u64 = 85;
const FILE: u64 = 2000;
const VIDEO: u64 = 5000;

/// The tokens of a text.
pub(crate) fn tokens_of(text: &str) -> u64 {
    (text.len() as u64).div_ceil(BYTES_PER_TOKEN)
}

/// The tokens of a conversation.
pub(crate) fn tokens_of_conversation(conversation: &Conversation) -> u64 {
    conversation.items().map(tokens_of_item).sum()
}

/// The tokens of one item.
pub(crate) fn tokens_of_item(item: &Item) -> u64 {
    let content = match item {
        Item::Message(message) => tokens_of_parts(&message.content),
        Item::FunctionCall(call) => tokens_of(&call.name) + tokens_of(&call.arguments),
        Item::FunctionCallOutput(output) => match &output.output {
            CallOutput::Text(text) => tokens_of(text),
            CallOutput::Parts(parts) => tokens_of_parts(parts),
        },
        Item::Reasoning(reasoning) => {
            tokens_of_parts(&reasoning.summary) + tokens_of_parts(&reasoning.content)
        }
        // Its result is an image in base64.
        Item::Other(_) if item.kind() == "image_generation_call" => IMAGE,
        Item::Other(members) => text_bytes(members).div_ceil(BYTES_PER_TOKEN),
        _ => 0,
    };
    PER_ITEM + content
}

/// The tokens of the tools that go along.
pub(crate) fn tokens_of_tools<'t>(tools: impl Iterator<Item = &'t Arc<ToolDefinition>>) -> u64 {
    let definitions = tools.map(|tool| tool.to_json().to_string());
    definitions.map(|text| PER_ITEM + tokens_of(&text)).sum()
}

fn tokens_of_parts(parts: &[ContentPart]) -> u64 {
    parts.iter().map(tokens_of_part).sum()
}

fn tokens_of_part(part: &ContentPart) -> u64 {
    match part {
        ContentPart::InputImage { detail, .. } => image(detail.as_deref()),
        ContentPart::Refusal { refusal } => tokens_of(refusal),
        ContentPart::Other(members) => match part.kind() {
            "input_image" => image(members.get("detail").and_then(Value::as_str)),
            "input_file" => FILE,
            "input_video" => VIDEO,
            _ => text_bytes(members).div_ceil(BYTES_PER_TOKEN),
        },
        part => part.text().map_or(0, tokens_of),
    }
}

fn image(detail: Option<&str>) -> u64 {
    if detail == Some("low") {
        SMALL_IMAGE
    } else {
        IMAGE
    }
}

/// The bytes of all text in an object, names included; data and what is encrypted are no text.
fn text_bytes(members: &Map<String, Value>) -> u64 {
    let counted = members
        .iter()
        .filter(|(key, _)| *key != "encrypted_content");
    counted
        .map(|(key, value)| key.len() as u64 + bytes_of_value(value))
        .sum()
}

fn bytes_of_value(value: &Value) -> u64 {
    match value {
        Value::String(text) if is_data(text) => 0,
        Value::String(text) => text.len() as u64,
        Value::Array(values) => values.iter().map(bytes_of_value).sum(),
        Value::Object(members) => text_bytes(members),
        Value::Null | Value::Bool(_) | Value::Number(_) => BYTES_PER_TOKEN,
    }
}

fn is_data(text: &str) -> bool {
    text.starts_with("data:") && text.contains(";base64,")
}

#[cfg(test)]
mod tests {
    use haft_core::Reasoning;
    use serde_json::json;

    use super::*;

    fn tokens(item: Value) -> u64 {
        tokens_of_item(&serde_json::from_value(item).unwrap())
    }

    #[test]
    fn text_costs_a_token_for_four_bytes_and_each_item_a_little() {
        assert_eq!(tokens_of_item(&Item::user("")), 4);
        assert_eq!(tokens_of_item(&Item::user("12345678")), 6);
        assert_eq!(tokens_of_item(&Item::user("123456789")), 7);
        assert_eq!(tokens_of_item(&Item::function_call("a", "ping", "{}")), 6);
        assert_eq!(tokens_of_item(&Item::function_call_output("a", "pong")), 5);
        let both: Conversation = [Item::user("1234"), Item::assistant("1234")]
            .into_iter()
            .collect();
        assert_eq!(tokens_of_conversation(&both), 10);
    }

    #[test]
    fn media_cost_by_the_piece_whatever_their_bytes() {
        let data = format!("data:image/png;base64,{}", "A".repeat(1_000_000));
        let image = |detail: &str| {
            tokens(json!({"role": "user", "content": [
                {"type": "input_text", "text": "what is this"},
                {"type": "input_image", "image_url": data, "detail": detail},
            ]}))
        };
        assert_eq!(image("auto"), 4 + 3 + 1000);
        assert_eq!(image("low"), 4 + 3 + 85);
        let file = json!({"role": "user", "content": [
            {"type": "input_file", "filename": "a.pdf", "file_data": data},
        ]});
        assert_eq!(tokens(file), 2004);
        let drawn =
            json!({"type": "image_generation_call", "id": "ig_1", "result": "A".repeat(1_000_000)});
        assert_eq!(tokens(drawn), 1004);
        let seen = json!({"type": "function_call_output", "call_id": "a", "output": [
            {"type": "input_image", "image_url": data},
        ]});
        assert_eq!(tokens(seen), 1004);
    }

    #[test]
    fn data_and_encrypted_content_are_no_text() {
        let thought = Item::Reasoning(Reasoning {
            summary: vec![ContentPart::SummaryText {
                text: "1234".into(),
            }],
            encrypted_content: Some("x".repeat(10_000)),
            ..Reasoning::default()
        });
        assert_eq!(tokens_of_item(&thought), 5);
        let drawn = json!({"type": "drawn", "result": format!("data:image/png;base64,{}", "A".repeat(10_000)),
            "encrypted_content": "x".repeat(10_000)});
        assert!(tokens(drawn) < 20);
    }
}

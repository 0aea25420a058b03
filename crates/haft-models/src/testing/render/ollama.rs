//! Answers of Ollama's own protocol: one JSON object per line, calls whole and without ids.

use haft_core::{FinishReason, Item};
use serde_json::{Map, Value, json};

use super::{Rendered, object_or_text};

pub(super) fn events(rendered: &Rendered<'_>) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    let mut tell = |message: Value| {
        let mut line = line(rendered, message);
        line.insert("done".to_owned(), false.into());
        lines.push(format!("{}\n", Value::Object(line)));
    };
    for item in &rendered.answer.items {
        match item {
            Item::Message(message) => {
                for text in message.content.iter().filter_map(text_of) {
                    for piece in rendered.pieces(text) {
                        tell(json!({"role": "assistant", "content": piece}));
                    }
                }
            }
            Item::Reasoning(reasoning) => {
                for piece in rendered.pieces(&super::chat::thoughts(reasoning)) {
                    tell(json!({"role": "assistant", "content": "", "thinking": piece}));
                }
            }
            Item::FunctionCall(call) => {
                let call = call_json(&call.name, &call.arguments);
                tell(json!({"role": "assistant", "content": "", "tool_calls": [call]}));
            }
            other => return Err(rendered.cannot_say(other)),
        }
    }
    let last = ended(rendered, json!({"role": "assistant", "content": ""}));
    lines.push(format!("{last}\n"));
    Ok(lines)
}

pub(super) fn whole(rendered: &Rendered<'_>) -> Result<Value, String> {
    let (mut content, mut thinking) = (String::new(), String::new());
    let mut calls = Vec::new();
    for item in &rendered.answer.items {
        match item {
            Item::Message(message) => {
                content.extend(message.content.iter().filter_map(text_of));
            }
            Item::Reasoning(reasoning) => thinking.push_str(&super::chat::thoughts(reasoning)),
            Item::FunctionCall(call) => calls.push(call_json(&call.name, &call.arguments)),
            other => return Err(rendered.cannot_say(other)),
        }
    }
    let mut message = json!({"role": "assistant", "content": content});
    if !thinking.is_empty() {
        message["thinking"] = thinking.into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    Ok(ended(rendered, message))
}

/// Ollama has no form of its own for refusals: they are text.
pub(super) fn text_of(part: &haft_core::ContentPart) -> Option<&str> {
    match part {
        haft_core::ContentPart::Refusal { refusal } => Some(refusal),
        part => part.text(),
    }
}

fn call_json(name: &str, arguments: &str) -> Value {
    json!({"function": {"name": name, "arguments": object_or_text(arguments)}})
}

fn line(rendered: &Rendered<'_>, message: Value) -> Map<String, Value> {
    let members = [
        ("model", json!(rendered.model())),
        ("created_at", json!("2026-01-01T00:00:00Z")),
        ("message", message),
    ];
    let members = members.into_iter();
    members
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

fn ended(rendered: &Rendered<'_>, message: Value) -> Value {
    let mut line = Value::Object(line(rendered, message));
    let reason = match rendered.answer.finish {
        FinishReason::Normal => Some("stop"),
        FinishReason::Length => Some("length"),
        FinishReason::ContentFilter => Some("content_filter"),
        FinishReason::Error => Some("error"),
        _ => None,
    };
    if let Some(reason) = reason {
        line["done_reason"] = reason.into();
    }
    line["done"] = true.into();
    line["total_duration"] = 4_000_000.into();
    line["load_duration"] = 1_000_000.into();
    if let Some(usage) = rendered.answer.usage {
        line["prompt_eval_count"] = usage.input_tokens.into();
        line["prompt_eval_duration"] = 1_000_000.into();
        line["eval_count"] = usage.output_tokens.into();
        line["eval_duration"] = 2_000_000.into();
    }
    line
}

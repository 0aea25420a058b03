//! What each item adds to a request, rendered once.

use std::sync::Arc;

use haft_core::{
    ContentPart, Entry, FunctionCall, FunctionCallOutput, Item, Message, Reasoning, RenderKey, Role,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::body::json as to_json;
use super::super::schema::Profile;
use super::super::turns::leave_out;
use super::{ChatForm, append, host_role};
use crate::lift::REASONING_FIELD;

/// What an item adds to a request.
#[derive(Debug)]
pub(super) enum Piece {
    /// A whole message.
    Message(Vec<u8>),
    /// Text of an assistant message: the inside of a JSON string.
    Text(Vec<u8>),
    /// Thoughts, under their provider's name: the inside of a JSON string.
    Thoughts(&'static str, Vec<u8>),
    /// An entry of `tool_calls`.
    Call(Vec<u8>),
    /// A tool message, and the parts that it cannot hold.
    Output {
        message: Vec<u8>,
        images: Vec<u8>,
    },
    Nothing,
}

/// An item rendered, once for each form.
pub(super) fn piece(entry: &Entry, form: &ChatForm<'_>) -> Arc<Piece> {
    let images = form.capabilities.image_input;
    let is_openai = form.profile == Profile::Openai;
    let variant = u64::from(images) + 2 * u64::from(form.developer_role) + 4 * u64::from(is_openai);
    entry
        .rendered()
        .get(RenderKey::new("chat").variant(variant), || {
            #[cfg(test)]
            super::tests::RENDERED.with(|count| count.set(count.get() + 1));
            match entry.item() {
                Item::Message(message) if message.role == Role::Assistant => assistant(message),
                Item::Message(message) => said(message, form),
                Item::FunctionCall(call) => tool_call(call, form),
                Item::FunctionCallOutput(output) => tool_output(output, form),
                Item::Reasoning(reasoning) => thoughts(reasoning),
                _ => {
                    leave_out(entry);
                    Piece::Nothing
                }
            }
        })
}

/// The inside of a JSON string.
fn inside(text: &str) -> Vec<u8> {
    let json = to_json(text);
    json[1..json.len() - 1].to_vec()
}

fn assistant(message: &Message) -> Piece {
    let texts: Vec<_> = message
        .content
        .iter()
        .filter_map(|part| match part {
            ContentPart::Refusal { refusal } => Some(refusal.as_str()),
            part => part.text(),
        })
        .collect();
    Piece::Text(inside(&texts.join("\n")))
}

fn said(message: &Message, form: &ChatForm<'_>) -> Piece {
    let role = match message.role {
        Role::User => "user",
        _ => host_role(form),
    };
    let has_image = |part: &ContentPart| matches!(part, ContentPart::InputImage { .. });
    let content = if form.capabilities.image_input && message.content.iter().any(has_image) {
        message.content.iter().map(content_part).collect()
    } else {
        let texts: Vec<_> = message.content.iter().map(as_text).collect();
        Value::String(texts.join("\n"))
    };
    Piece::Message(to_json(&json!({"role": role, "content": content})))
}

fn content_part(part: &ContentPart) -> Value {
    match part {
        ContentPart::InputImage { image_url, detail } => {
            let mut image = json!({"url": image_url});
            if let Some(detail) = detail {
                image["detail"] = detail.as_str().into();
            }
            json!({"type": "image_url", "image_url": image})
        }
        part => json!({"type": "text", "text": as_text(part)}),
    }
}

/// A part in words; what is no text is named in brackets.
pub(in crate::lower) fn as_text(part: &ContentPart) -> String {
    match part {
        ContentPart::InputImage { .. } => {
            tracing::warn!("an image is left out: this model cannot be sent it");
            String::from("[image]")
        }
        ContentPart::Refusal { refusal } => refusal.clone(),
        ContentPart::Other(members) => {
            let kind = members
                .get("type")
                .and_then(Value::as_str)
                .unwrap_or("unknown");
            tracing::warn!(
                kind,
                "a part of a message is left out: this provider has no place for it"
            );
            format!("[unsupported content: {kind}]")
        }
        part => part.text().unwrap_or_default().to_owned(),
    }
}

fn tool_call(call: &FunctionCall, form: &ChatForm<'_>) -> Piece {
    // Most servers read the arguments of past calls as JSON, and fail the whole request where they
    // are none. Such a call was answered with an error already.
    let keeps_any_text = form.profile == Profile::Openai && !call.arguments.trim().is_empty();
    let arguments = if keeps_any_text {
        &call.arguments
    } else {
        object_or_empty(&call.arguments)
    };
    Piece::Call(to_json(&json!({
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    })))
}

/// The JSON object that a text is; `{}` if it is none.
pub(in crate::lower) fn object_or_empty(arguments: &str) -> &str {
    serde_json::from_str::<&RawValue>(arguments)
        .ok()
        .map(RawValue::get)
        .filter(|json| json.starts_with('{'))
        .unwrap_or("{}")
}

fn tool_output(output: &FunctionCallOutput, form: &ChatForm<'_>) -> Piece {
    let message = json!({
        "role": "tool",
        "tool_call_id": output.call_id,
        "content": output.output.to_text(),
    });
    let mut images = Vec::new();
    if let haft_core::CallOutput::Parts(parts) = &output.output
        && form.capabilities.image_input
    {
        let pictures = parts
            .iter()
            .filter(|part| matches!(part, ContentPart::InputImage { .. }));
        let pictures: Vec<_> = pictures.map(|part| to_json(&content_part(part))).collect();
        if !pictures.is_empty() {
            let words = format!("From the output of call `{}`:", output.call_id);
            images = to_json(&json!({"type": "text", "text": words}));
            for picture in pictures {
                append(&mut images, &picture, b",");
            }
        }
    }
    Piece::Output {
        message: to_json(&message),
        images,
    }
}

/// Thoughts go back only to where they came from: this protocol, under the name they had.
fn thoughts(reasoning: &Reasoning) -> Piece {
    let given = reasoning.extra.get(REASONING_FIELD).and_then(Value::as_str);
    let known = ["reasoning_content", "reasoning"];
    match known.into_iter().find(|field| given == Some(*field)) {
        Some(field) => {
            let texts = reasoning.content.iter().filter_map(ContentPart::text);
            Piece::Thoughts(field, inside(&texts.collect::<String>()))
        }
        None => Piece::Nothing,
    }
}

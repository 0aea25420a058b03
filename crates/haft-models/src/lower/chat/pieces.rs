//! What each item adds to a request, rendered once.

use std::sync::Arc;

use haft_core::{
    CallOutput, Capabilities, ContentPart, Entry, FunctionCall, FunctionCallOutput, Item, Message,
    Reasoning, RenderKey, Role, UnsupportedContent,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::body::json as to_json;
use super::super::input::{self, File, Input};
use super::super::schema::Profile;
use super::super::turns::leave_out;
use super::{ChatForm, append, host_role};
use crate::lift::REASONING_FIELD;
use crate::reasoning_field::ReasoningField;

/// What an item adds to a request.
#[derive(Debug)]
pub(super) enum Piece {
    /// A whole message.
    Message(Vec<u8>),
    /// Text of an assistant message: the inside of a JSON string.
    Text(Vec<u8>),
    /// Reasoning, with the member that its server gave it in, if known: the inside of a JSON string.
    Reasoning(Option<&'static str>, Vec<u8>),
    /// An entry of `tool_calls`.
    Call(Vec<u8>),
    /// A tool message, and the parts that it cannot hold.
    Output {
        message: Vec<u8>,
        media: Vec<u8>,
    },
    /// A part of it has no place.
    Refused(UnsupportedContent),
    Nothing,
}

/// An item rendered, once for each form.
pub(super) fn piece(entry: &Entry, form: &ChatForm<'_>) -> Arc<Piece> {
    let is_openai = form.profile == Profile::Openai;
    let variant = input::variant(&form.capabilities)
        + 8 * u64::from(form.developer_role)
        + 16 * u64::from(is_openai);
    entry
        .rendered()
        .get(RenderKey::new("chat").variant(variant), || {
            #[cfg(test)]
            super::tests::RENDERED.with(|count| count.set(count.get() + 1));
            match entry.item() {
                Item::Message(message) if message.role == Role::Assistant => assistant(message),
                Item::Message(message) => said(message, entry.item(), form),
                Item::FunctionCall(call) => tool_call(call, form),
                Item::FunctionCallOutput(output) => tool_output(output, form),
                Item::Reasoning(item) => reasoning(item),
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
    let texts: Vec<_> = message.content.iter().map(as_text).collect();
    Piece::Text(inside(&texts.join("\n")))
}

fn said(message: &Message, item: &Item, form: &ChatForm<'_>) -> Piece {
    if let Some(refused) = unsupported(item, &form.capabilities) {
        return Piece::Refused(refused);
    }
    let role = match message.role {
        Role::User => "user",
        _ => host_role(form),
    };
    let is_text = |part| matches!(Input::of(part), Input::Text(_));
    let content = if message.content.iter().all(is_text) {
        let texts: Vec<_> = message.content.iter().map(as_text).collect();
        Value::String(texts.join("\n"))
    } else {
        message.content.iter().map(content_part).collect()
    };
    Piece::Message(to_json(&json!({"role": role, "content": content})))
}

/// The first part of an item that this protocol has no place for.
pub(crate) fn unsupported(item: &Item, capabilities: &Capabilities) -> Option<UnsupportedContent> {
    input::unsupported(item, capabilities, objection)
}

fn objection(input: &Input<'_>) -> Option<&'static str> {
    match input {
        Input::Image { url: None, .. } => {
            Some("Chat Completions take an image by `image_url` only")
        }
        Input::Video { url: None } => Some("Chat Completions take a video by `video_url` only"),
        Input::File(File {
            data: None,
            id: None,
            ..
        }) => Some("Chat Completions take a file by `file_data` only, not by an address"),
        _ => None,
    }
}

fn content_part(part: &ContentPart) -> Value {
    match Input::of(part) {
        Input::Image {
            url: Some(url),
            detail,
        } => {
            let mut image = json!({"url": url});
            if let Some(detail) = detail {
                image["detail"] = detail.into();
            }
            json!({"type": "image_url", "image_url": image})
        }
        Input::File(File { data, id, name, .. }) if data.is_some() || id.is_some() => {
            let members = [("file_data", data), ("file_id", id), ("filename", name)];
            let members = members.into_iter();
            let file: Value = members
                .filter_map(|(key, value)| Some((key.to_owned(), Value::from(value?))))
                .collect();
            json!({"type": "file", "file": file})
        }
        Input::Video { url: Some(url) } => {
            json!({"type": "video_url", "video_url": {"url": url}})
        }
        _ => json!({"type": "text", "text": as_text(part)}),
    }
}

/// A part in words; what is no text is named in brackets.
pub(in crate::lower) fn as_text(part: &ContentPart) -> String {
    match Input::of(part) {
        Input::Text(text) => text.to_owned(),
        _ => input::in_brackets(part),
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

/// A tool message holds only text. What else the output has follows behind all tool messages.
fn tool_output(output: &FunctionCallOutput, form: &ChatForm<'_>) -> Piece {
    let (mut texts, mut media) = (Vec::new(), Vec::new());
    match &output.output {
        CallOutput::Text(text) => texts.push(text.clone()),
        CallOutput::Parts(parts) => {
            for part in parts {
                let is_text = matches!(Input::of(part), Input::Text(_));
                let is_refused = || input::refusal(part, &form.capabilities, objection).is_some();
                if is_text || is_refused() {
                    texts.push(as_text(part));
                } else {
                    texts.push(placeholder(part).to_owned());
                    media.push(to_json(&content_part(part)));
                }
            }
        }
    }
    let message = json!({
        "role": "tool",
        "tool_call_id": output.call_id,
        "content": texts.join("\n\n"),
    });
    let mut following = Vec::new();
    if !media.is_empty() {
        let words = format!("From the output of call `{}`:", output.call_id);
        following = to_json(&json!({"type": "text", "text": words}));
        for part in media {
            append(&mut following, &part, b",");
        }
    }
    Piece::Output {
        message: to_json(&message),
        media: following,
    }
}

/// What stands in the tool message for a part that follows behind it.
fn placeholder(part: &ContentPart) -> &'static str {
    match Input::of(part) {
        Input::Image { .. } => "[image]",
        Input::Video { .. } => "[video]",
        _ => "[file]",
    }
}

/// Reasoning goes back as text. What another provider signed or encrypted stays behind: it belongs to
/// that provider's conversation.
fn reasoning(reasoning: &Reasoning) -> Piece {
    let given = reasoning.extra.get(REASONING_FIELD).and_then(Value::as_str);
    let mut known = ReasoningField::MEMBERS.into_iter();
    let member = known.find(|member| given == Some(*member));
    let text = reasoning.text();
    if text.is_empty() || member.is_none() && reasoning.is_encrypted() {
        return Piece::Nothing;
    }
    Piece::Reasoning(member, inside(&text))
}

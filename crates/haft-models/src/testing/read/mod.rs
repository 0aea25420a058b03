//! What a request in a provider's form says, in the words that all share.
//!
//! Only what a provider would refuse at once is an error here; whether the rest is as it should be is
//! for the script to expect.

mod chat;
mod deferred;
mod messages;
mod responses;

use haft_core::ToolChoice;
use serde_json::Value;

use super::protocol::Protocol;
use crate::scripted::RequestView;

/// The view of a body, or what a provider would refuse about it.
pub(super) fn view(protocol: Protocol, body: &Value) -> Result<RequestView, String> {
    if !body.is_object() {
        return Err("the body is not a JSON object".to_owned());
    }
    let model = text_at(body, "model").ok_or("the body has no `model`")?;
    let mut view = match protocol {
        Protocol::ChatCompletions => chat::view(body),
        Protocol::Ollama => chat::ollama_view(body),
        Protocol::Responses => responses::view(body),
        Protocol::Messages => messages::view(body),
    }?;
    view.model = Some(model.to_owned());
    view.body = Some(body.clone());
    Ok(view)
}

fn text_at<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

/// The list at a key; empty if there is none.
fn list_at<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], |list| list)
}

/// Text that is a string or parts with a `text`.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| text_at(part, "text"))
            .collect(),
        _ => String::new(),
    }
}

fn said(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// A tool choice in a form of this crate's own, from a form that nests names under `function`.
fn openai_choice(json: &Value) -> Result<ToolChoice, String> {
    let mut flat = json.clone();
    if let Some(nested) = json.get("allowed_tools").filter(|it| it.is_object()) {
        flat = nested.clone();
        flat["type"] = "allowed_tools".into();
    }
    flatten(&mut flat);
    if let Some(tools) = flat.get_mut("tools").and_then(Value::as_array_mut) {
        tools.iter_mut().for_each(flatten);
    }
    serde_json::from_value(flat).map_err(|error| error.to_string())
}

fn flatten(tool: &mut Value) {
    let name = tool.get("function").and_then(|it| it.get("name")).cloned();
    if let (Some(name), Some(members)) = (name, tool.as_object_mut()) {
        members.insert("name".to_owned(), name);
    }
}

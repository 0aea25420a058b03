//! Items as a Responses server takes them back, each rendered once.
//!
//! What comes in: one item of a conversation, which is in this form already. What goes out: its
//! JSON without what the provider refuses: haft's own mark of failures, ids and statuses of items
//! that the provider does not hold, text under the other side's name, and thoughts that it cannot
//! read. Parts of types that haft does not know go out as they are: the provider may know them.

use std::collections::HashSet;

use haft_core::{
    CallOutput, Capabilities, ContentPart, FunctionCallOutput, Item, Message, ProviderOptions,
    Reasoning, RenderKey, Role, TOOL_REFERENCES, UnsupportedContent,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::input::{self, Input};
use super::native;
use crate::lift::{REASONING_FIELD, WIRE_ID};

/// What is noted down on items: how a call was found, what thoughts were called, under which id they
/// were sealed, and which tools an output refers to.
const NOTES: [&str; 4] = ["recovered", REASONING_FIELD, WIRE_ID, TOOL_REFERENCES];

/// Which thoughts are sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ThoughtsBack {
    /// Those that the provider sealed itself, in `encrypted_content`.
    #[default]
    Sealed,
    /// Those in plain words too: servers of open models want them with the calls that they led to.
    Plain,
}

impl ThoughtsBack {
    /// Under which items rendered this way are kept.
    pub(super) fn key(self, capabilities: &Capabilities) -> RenderKey {
        let thoughts = match self {
            Self::Sealed => 0,
            Self::Plain => 8,
        };
        RenderKey::new("responses:item").variant(input::variant(capabilities) + thoughts)
    }
}

/// An item as it is sent: its JSON, none if the provider could do nothing with it, or what it
/// cannot be sent.
pub(super) type Rendered = Result<Option<Box<str>>, UnsupportedContent>;

/// Renders an item.
pub(super) fn render(item: &Item, thoughts: ThoughtsBack, capabilities: &Capabilities) -> Rendered {
    if let Item::Message(_) = item
        && let Some(refused) = unsupported(item, capabilities)
    {
        return Err(refused);
    }
    Ok(json(item, thoughts, capabilities))
}

/// The first part of an item that the model cannot be sent.
pub(crate) fn unsupported(item: &Item, capabilities: &Capabilities) -> Option<UnsupportedContent> {
    item.refused_part(|part| refusal(part, capabilities))
}

fn refusal(part: &ContentPart, capabilities: &Capabilities) -> Option<String> {
    match Input::of(part) {
        Input::Text(_) | Input::Unknown => None,
        _ => capabilities.refusal_of(part.kind()),
    }
}

/// Renders a call, or the output of one, of a tool that the provider has a form of its own for; none for every
/// other item.
pub(super) fn native(
    item: &Item,
    provider: &ProviderOptions,
    custom_calls: &HashSet<&str>,
    capabilities: &Capabilities,
) -> Option<Box<str>> {
    if provider.forms.is_empty() {
        return None;
    }
    let json = match item {
        Item::FunctionCall(call) => {
            let form = provider.forms.get(&call.name)?;
            let mut json = native::call_members(call, form);
            if form.custom.is_none() {
                json.insert("arguments".into(), arguments(&call.arguments).into());
            }
            extend(&mut json, &call.extra);
            Value::Object(json)
        }
        Item::FunctionCallOutput(output) => {
            let kind = native::output_type(output, custom_calls);
            if kind == "function_call_output" {
                return None;
            }
            let mut json = output_json(output, capabilities);
            json["type"] = kind.into();
            json
        }
        _ => return None,
    };
    serde_json::to_string(&json).ok().map(Into::into)
}

fn json(item: &Item, thoughts: ThoughtsBack, capabilities: &Capabilities) -> Option<Box<str>> {
    if let Item::Message(message) = item
        && let Some(plain) = PlainMessage::of(message)
    {
        return serde_json::to_string(&plain).ok().map(Into::into);
    }
    let json = match item {
        Item::Message(message) => message_json(message)?,
        Item::FunctionCall(call) => object(
            [
                ("type", "function_call".into()),
                ("call_id", call.call_id.as_str().into()),
                ("name", call.name.as_str().into()),
                ("arguments", arguments(&call.arguments).into()),
            ],
            &call.extra,
        ),
        Item::FunctionCallOutput(output) => output_json(output, capabilities),
        Item::Reasoning(reasoning) => reasoning_json(reasoning, thoughts)?,
        // Types with a vendor's name are known to that vendor alone.
        Item::Other(members) if item.kind().contains(':') => {
            tracing::debug!(kind = ?members.get("type"), "an item of another provider is not sent");
            return None;
        }
        other => serde_json::to_value(other).ok()?,
    };
    serde_json::to_string(&json).ok().map(Into::into)
}

/// No arguments at all are an empty object: a server that reads past calls wants JSON.
fn arguments(text: &str) -> &str {
    if text.trim().is_empty() { "{}" } else { text }
}

/// A message of nothing but text for the model, as most are.
#[derive(Serialize)]
struct PlainMessage<'m> {
    #[serde(rename = "type")]
    kind: &'static str,
    role: Role,
    content: &'m [ContentPart],
}

impl<'m> PlainMessage<'m> {
    fn of(message: &'m Message) -> Option<Self> {
        let is_text = |part: &ContentPart| matches!(part, ContentPart::InputText { .. });
        let is_plain = message.role != Role::Assistant
            && !message.content.is_empty()
            && message.extra.is_empty()
            && message.content.iter().all(is_text);
        is_plain.then_some(Self {
            kind: "message",
            role: message.role,
            content: &message.content,
        })
    }
}

fn message_json(message: &Message) -> Option<Value> {
    if message.content.is_empty() {
        return None;
    }
    let content = message
        .content
        .iter()
        .map(|part| part_json(part, message.role));
    let members = [
        ("type", "message".into()),
        ("role", json!(message.role)),
        ("content", content.collect()),
    ];
    Some(object(members, &message.extra))
}

/// A part under the name that its side uses; a bare string is read as input on every side.
fn part_json(part: &ContentPart, role: Role) -> Value {
    match (part, role) {
        (ContentPart::InputText { text }, Role::Assistant) => {
            json!(ContentPart::output_text(text.as_str()))
        }
        (ContentPart::OutputText { text, .. }, Role::User | Role::System | Role::Developer) => {
            json!({"type": "input_text", "text": text})
        }
        _ => json!(part),
    }
}

fn output_json(output: &FunctionCallOutput, capabilities: &Capabilities) -> Value {
    let content = match &output.output {
        CallOutput::Text(text) => Value::from(text.as_str()),
        CallOutput::Parts(parts) => {
            let parts = parts.iter().map(|part| match refusal(part, capabilities) {
                Some(_) => json!({"type": "input_text", "text": input::in_brackets(part)}),
                None => part_json(part, Role::User),
            });
            parts.collect()
        }
    };
    let members = [
        ("type", "function_call_output".into()),
        ("call_id", output.call_id.as_str().into()),
        ("output", content),
    ];
    object(members, &output.extra)
}

fn reasoning_json(reasoning: &Reasoning, thoughts: ThoughtsBack) -> Option<Value> {
    // Other adapters mark what they sealed with their name and a colon, which is in no base64.
    let sealed = reasoning
        .encrypted_content
        .as_deref()
        .filter(|sealed| !sealed.is_empty() && !sealed.contains(':'));
    let is_plain = reasoning.encrypted_content.is_none() && !reasoning.content.is_empty();
    if sealed.is_none() && !(thoughts == ThoughtsBack::Plain && is_plain) {
        return None;
    }
    let mut json = Map::new();
    json.insert("type".into(), "reasoning".into());
    // What is sealed is sealed for its id.
    let sealed_id = reasoning.extra.get(WIRE_ID).and_then(Value::as_str);
    if let Some(id) = sealed_id.or(reasoning.id.as_deref()) {
        json.insert("id".into(), id.into());
    }
    json.insert("summary".into(), json!(reasoning.summary));
    if !reasoning.content.is_empty() {
        json.insert("content".into(), json!(reasoning.content));
    }
    if let Some(sealed) = sealed {
        json.insert("encrypted_content".into(), sealed.into());
    }
    extend(&mut json, &reasoning.extra);
    Some(Value::Object(json))
}

fn object<const N: usize>(members: [(&str, Value); N], extra: &Map<String, Value>) -> Value {
    let members = members
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value));
    let mut json: Map<String, Value> = members.collect();
    extend(&mut json, extra);
    Value::Object(json)
}

/// Adds what else was there, but for what other adapters noted down.
fn extend(json: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (key, value) in extra {
        if !value.is_null() && !NOTES.contains(&key.as_str()) {
            json.entry(key).or_insert_with(|| value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(item: Value, thoughts: ThoughtsBack) -> Option<String> {
        let capabilities = Capabilities {
            image_input: true,
            ..Capabilities::default()
        };
        let item = serde_json::from_value(item).unwrap();
        let rendered = render(&item, thoughts, &capabilities).unwrap();
        rendered.map(Into::into)
    }

    fn sent(item: Value) -> Option<String> {
        rendered(item, ThoughtsBack::Sealed)
    }

    #[test]
    fn ids_statuses_and_haft_marks_stay_behind_and_other_members_go() {
        let call = json!({"type": "function_call", "id": "fc_1", "status": "completed",
            "call_id": "c", "name": "n", "arguments": " {\"a\" :1}", "namespace": "crm", "x": null,
            "recovered": true});
        assert_eq!(
            sent(call).unwrap(),
            r#"{"type":"function_call","call_id":"c","name":"n","arguments":" {\"a\" :1}","namespace":"crm"}"#
        );
        let output = json!({"type": "function_call_output", "id": "fco_1", "call_id": "c",
            "output": "no", "is_error": true});
        assert_eq!(
            sent(output).unwrap(),
            r#"{"type":"function_call_output","call_id":"c","output":"no"}"#
        );
        let message = json!({"type": "message", "id": "msg_1", "status": "completed",
            "role": "assistant", "content": "hi", "phase": "final_answer"});
        assert_eq!(
            sent(message).unwrap(),
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi","annotations":[]}],"phase":"final_answer"}"#
        );
    }

    #[test]
    fn images_in_outputs_are_sent() {
        let output = json!({"type": "function_call_output", "call_id": "c", "output": [
            {"type": "output_text", "text": "see"},
            {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "low"}]});
        assert_eq!(
            sent(output).unwrap(),
            r#"{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,AA","detail":"low"}]}"#
        );
    }

    #[test]
    fn only_readable_thoughts_are_sent() {
        let thought = |sealed: Value| {
            json!({"type": "reasoning", "id": "rs_1", "summary": [],
                "content": [{"type": "reasoning_text", "text": "hm"}], "encrypted_content": sealed})
        };
        assert_eq!(
            sent(thought(json!("gAAA"))).unwrap(),
            r#"{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}],"encrypted_content":"gAAA"}"#
        );
        assert_eq!(sent(thought(json!("anthropic:sig"))), None);
        assert_eq!(sent(thought(Value::Null)), None);
        assert!(rendered(thought(Value::Null), ThoughtsBack::Plain).is_some());
        assert_eq!(
            rendered(thought(json!("anthropic:sig")), ThoughtsBack::Plain),
            None
        );
    }

    #[test]
    fn items_of_the_provider_go_back_as_they_came_and_those_of_vendors_stay() {
        let item = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
        assert_eq!(sent(item.clone()).unwrap(), item.to_string());
        assert_eq!(
            sent(json!({"type": "anthropic:server_tool_use", "block": {}})),
            None
        );
    }
}

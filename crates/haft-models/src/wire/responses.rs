//! What a Responses server sends, as far as it is read here.
//!
//! Everything is optional: servers leave out `sequence_number`, `output_index`, ids and whole
//! events. Items are read one by one, so that one odd field does not lose the answer.

use haft_core::{ContentPart, Item, ItemStatus, Message, ModelError, ModelErrorKind, Role, Usage};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{Text, arguments};

/// One streamed event of any type. Members are read where they are needed: another event may use
/// the same name for something else.
#[derive(Deserialize)]
pub(crate) struct Event<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) output_index: Option<Value>,
    pub(crate) summary_index: Option<Value>,
    #[serde(borrow)]
    pub(crate) item_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) delta: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) logprobs: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) response: Option<&'a RawValue>,
    pub(crate) error: Option<Value>,
}

/// An event that brings a piece of an item, as nearly all servers write it. These are most of a
/// stream, so they are read in one go; what cannot be read so is read as an [`Event`].
#[derive(Deserialize)]
#[allow(clippy::struct_field_names, reason = "the names are the wire's")]
pub(crate) struct Delta<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Text<'a>,
    pub(crate) output_index: Option<u64>,
    pub(crate) summary_index: Option<u64>,
    #[serde(borrow)]
    pub(crate) item_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) delta: Text<'a>,
    #[serde(borrow)]
    pub(crate) logprobs: Option<&'a RawValue>,
}

/// The response object, in a terminal event or as a whole answer.
#[derive(Deserialize)]
pub(crate) struct Response<'a> {
    pub(crate) id: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) status: Option<String>,
    #[serde(borrow)]
    pub(crate) output: Option<Vec<&'a RawValue>>,
    #[serde(default, deserialize_with = "super::usage")]
    pub(crate) usage: Option<WireUsage>,
    pub(crate) incomplete_details: Option<Incomplete>,
    pub(crate) error: Option<Value>,
}

#[derive(Deserialize)]
pub(crate) struct Incomplete {
    pub(crate) reason: Option<String>,
}

/// Tokens as this protocol counts them.
#[derive(Deserialize)]
pub(crate) struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        let (read, written) = wire.input_tokens_details.map_or((None, None), |details| {
            (details.cached_tokens, details.cache_write_tokens)
        });
        Self {
            input_tokens: wire.input_tokens.unwrap_or(0),
            cache_write_tokens: written.unwrap_or(0),
            cached_input_tokens: read.unwrap_or(0),
            output_tokens: wire.output_tokens.unwrap_or(0),
            reasoning_tokens: wire
                .output_tokens_details
                .and_then(|details| details.reasoning_tokens)
                .unwrap_or(0),
            requests: 1,
        }
    }
}

/// A message as nearly all servers write it: read in one go, without a map in between.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainMessage {
    #[serde(rename = "type")]
    _kind: MessageKind,
    id: Option<String>,
    status: Option<ItemStatus>,
    role: Option<Role>,
    content: Vec<PlainPart>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum MessageKind {
    Message,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainPart {
    #[serde(rename = "type")]
    _kind: PartKind,
    text: String,
    annotations: Vec<Value>,
    #[serde(default, deserialize_with = "a_list")]
    logprobs: Option<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum PartKind {
    OutputText,
}

/// A member that is a list where it is there.
fn a_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Value>>, D::Error> {
    Vec::deserialize(deserializer).map(Some)
}

impl From<PlainMessage> for Message {
    fn from(plain: PlainMessage) -> Self {
        Self {
            id: plain.id,
            status: plain.status,
            role: plain.role.unwrap_or(Role::Assistant),
            content: plain.content.into_iter().map(Into::into).collect(),
            extra: Map::new(),
        }
    }
}

impl From<PlainPart> for ContentPart {
    fn from(plain: PlainPart) -> Self {
        let logprobs = plain.logprobs.into_iter();
        Self::OutputText {
            text: plain.text,
            annotations: plain.annotations,
            extra: logprobs
                .map(|list| ("logprobs".to_owned(), list.into()))
                .collect(),
        }
    }
}

/// Reads one item of an answer.
///
/// Calls come with arguments as text, as an object or not at all; the text of an object is kept as
/// it was written. `null` members count as absent.
pub(crate) fn read_item(raw: &RawValue) -> Result<Item, ModelError> {
    if let Ok(plain) = serde_json::from_str::<PlainMessage>(raw.get()) {
        return Ok(Item::Message(plain.into()));
    }
    read_members(raw)
}

/// The type of calls of custom tools.
pub(crate) const CUSTOM_CALL: &str = "custom_tool_call";

/// Reads an item of any form.
fn read_members(raw: &RawValue) -> Result<Item, ModelError> {
    #[derive(Deserialize)]
    struct Written<'a> {
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }
    let broken = |error: serde_json::Error| {
        let message = format!("an item of the answer cannot be read: {error}");
        ModelError::new(ModelErrorKind::Protocol, message)
    };
    let mut members: Map<String, Value> = serde_json::from_str(raw.get()).map_err(broken)?;
    let known_status = ["in_progress", "completed", "incomplete"];
    match members.get("type").and_then(Value::as_str) {
        Some("function_call") => {
            members.retain(|_, value| !value.is_null());
            let written: Written<'_> = serde_json::from_str(raw.get()).map_err(broken)?;
            let written = arguments(written.arguments).unwrap_or_default();
            members.insert("arguments".into(), written.into());
            for key in ["call_id", "name"] {
                if !members.get(key).is_some_and(Value::is_string) {
                    members.insert(key.into(), "".into());
                }
            }
        }
        Some(CUSTOM_CALL) => {
            members.retain(|_, value| !value.is_null());
            // Elsewhere it is a function of one argument.
            let input = members.shift_remove("input");
            let input = input.filter(Value::is_string).unwrap_or_else(|| "".into());
            members.insert("type".into(), "function_call".into());
            members.insert(
                "arguments".into(),
                json!({"input": input}).to_string().into(),
            );
            for key in ["call_id", "name"] {
                if !members.get(key).is_some_and(Value::is_string) {
                    members.insert(key.into(), "".into());
                }
            }
        }
        Some("message") => {
            members.retain(|_, value| !value.is_null());
            members.entry("role").or_insert_with(|| "assistant".into());
            members.entry("content").or_insert_with(|| json!([]));
        }
        Some("reasoning") => members.retain(|_, value| !value.is_null()),
        _ => return Item::from_members(members).map_err(broken),
    }
    if members
        .get("status")
        .is_some_and(|status| !known_status.iter().any(|known| status == known))
    {
        members.shift_remove("status");
    }
    Item::from_members(members).map_err(broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Item {
        read_item(&RawValue::from_string(json.into()).unwrap()).unwrap()
    }

    #[test]
    fn arguments_of_every_shape_become_text() {
        for (written, expected) in [
            (r#""{\"a\" :1}""#, r#"{"a" :1}"#),
            (
                r#"{"a" : 12345678901234567890123}"#,
                r#"{"a" : 12345678901234567890123}"#,
            ),
            ("null", ""),
            (r#""""#, ""),
        ] {
            let item = read(&format!(
                r#"{{"type":"function_call","id":null,"status":"searching","name":"n","arguments":{written}}}"#
            ));
            assert_eq!(item, Item::function_call("", "n", expected));
        }
    }

    #[test]
    fn a_message_that_is_read_in_one_go_is_the_one_that_is_read_by_its_members() {
        let parts = [
            r#"{"type":"output_text","text":"a","annotations":[],"logprobs":[]}"#,
            r#"{"type":"output_text","text":"a\"","annotations":[{"type":"x"}]}"#,
            r#"{"logprobs":[{"token":"a","logprob":-1}],"text":"","annotations":[],"type":"output_text"}"#,
            r#"{"type":"output_text","text":"a","annotations":[],"logprobs":null}"#,
            r#"{"type":"output_text","text":"a"}"#,
            r#"{"type":"output_text","text":"a","annotations":[],"more":1}"#,
            r#"{"type":"refusal","refusal":"no"}"#,
        ];
        for part in parts {
            for head in [
                r#""id":"m_1","status":"completed","role":"assistant""#,
                r#""id":null,"status":null"#,
                r#""status":"odd","role":"assistant""#,
                r#""role":"user","phase":"final""#,
            ] {
                let json = format!(r#"{{"type":"message",{head},"content":[{part}]}}"#);
                let raw = RawValue::from_string(json.clone()).unwrap();
                assert_eq!(read_item(&raw), read_members(&raw), "{json}");
            }
        }
    }

    #[test]
    fn null_members_count_as_absent() {
        let item = read(r#"{"type":"reasoning","summary":null,"content":null,"status":null}"#);
        assert_eq!(item, Item::Reasoning(haft_core::Reasoning::default()));
        let item = read(r#"{"type":"message","content":null}"#);
        assert_eq!(item.text(), "");
    }

    #[test]
    fn unknown_items_stay_as_they_came() {
        let item = read(r#"{"type":"web_search_call","id":"ws_1","status":"failed","x":null}"#);
        assert_eq!(
            serde_json::to_string(&item).unwrap(),
            r#"{"type":"web_search_call","id":"ws_1","status":"failed","x":null}"#
        );
    }

    #[test]
    fn an_item_that_is_no_object_is_an_error() {
        let raw = RawValue::from_string("[1]".into()).unwrap();
        let error = read_item(&raw).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Protocol);
    }
}

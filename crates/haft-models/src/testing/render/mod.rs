//! An answer in the form of each protocol, as its provider was seen to write it.

mod chat;
mod messages;
mod ollama;
mod responses;

use haft_core::Item;
use serde_json::Value;

use super::protocol::Protocol;
use crate::scripted::{Answer, Fault};

/// The moment that all answers claim to be from, so that the same script gives the same bytes:
/// 2026-01-01T00:00:00Z.
const CREATED: u64 = 1_767_225_600;

/// An answer, and the request that it answers.
#[derive(Clone, Copy)]
pub(super) struct Rendered<'a> {
    pub(super) protocol: Protocol,
    pub(super) answer: &'a Answer,
    pub(super) request: &'a Value,
}

impl Rendered<'_> {
    /// The events of a stream, each with its framing.
    pub(super) fn events(&self) -> Result<Vec<String>, String> {
        let mut events = match self.protocol {
            Protocol::ChatCompletions => chat::events(self),
            Protocol::Responses => Ok(responses::events(self)),
            Protocol::Messages => messages::events(self),
            Protocol::Ollama => return ollama::events(self),
        }?;
        if self.has(&Fault::NoDone) {
            events.pop();
        }
        Ok(events)
    }

    /// The answer in one piece.
    pub(super) fn whole(&self) -> Result<Value, String> {
        match self.protocol {
            Protocol::ChatCompletions => chat::whole(self),
            Protocol::Responses => Ok(responses::whole(self)),
            Protocol::Messages => messages::whole(self),
            Protocol::Ollama => ollama::whole(self),
        }
    }

    /// An error inside a stream, after so many events.
    pub(super) fn error_events(&self, after: usize, code: Option<&str>, message: &str) -> String {
        match self.protocol {
            Protocol::ChatCompletions => {
                let error = self.protocol.error_body(500, code, message);
                format!("data: {error}\n\n")
            }
            Protocol::Responses => responses::error_events(self, after, code, message),
            Protocol::Messages => messages::error_event(code, message),
            Protocol::Ollama => format!("{}\n", self.protocol.error_body(500, code, message)),
        }
    }

    /// The model's name, as the request has it.
    fn model(&self) -> &str {
        let model = self.request.get("model").and_then(Value::as_str);
        model.unwrap_or("scripted")
    }

    fn has(&self, fault: &Fault) -> bool {
        self.answer.step.fault.as_ref() == Some(fault)
    }

    /// The pieces of a text.
    fn pieces<'t>(&self, text: &'t str) -> Vec<&'t str> {
        self.answer.step.pieces.cut(text)
    }

    /// Arguments as the wire has them: text, or an object where the fault says so.
    fn arguments(&self, text: &str) -> Value {
        if self.has(&Fault::ObjectArguments) {
            return object_or_text(text);
        }
        text.into()
    }

    fn has_calls(&self) -> bool {
        let mut items = self.answer.items.iter();
        items.any(|item| matches!(item, Item::FunctionCall(_)))
    }

    fn cannot_say(&self, item: &Item) -> String {
        let (kind, title) = (item.kind(), self.protocol.title());
        format!("an item of type `{kind}` cannot be said in {title}: take it out of the step")
    }
}

/// Arguments for protocols that have them as JSON: an empty text is the empty object, and what is no
/// JSON stays text.
fn object_or_text(text: &str) -> Value {
    if text.is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// One SSE event with its name.
fn named_event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// An object whose first member is its `type`.
fn typed(name: &str, members: Value) -> Value {
    let mut data = serde_json::Map::new();
    data.insert("type".to_owned(), name.into());
    if let Value::Object(members) = members {
        data.extend(members);
    }
    Value::Object(data)
}

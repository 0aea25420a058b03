//! The items of a response, as its client sees them.

use serde::ser::SerializeSeq as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// The items of a response, as its client sees them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ShownItems {
    Any(Vec<Value>),
    /// What most responses have: one message of text, with nothing else to say about it. Written as such, without
    /// maps in between.
    Text(TextMessage),
}

/// A message of the model that is text and nothing else.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TextMessage {
    pub(crate) id: String,
    pub(crate) text: String,
}

impl Default for ShownItems {
    fn default() -> Self {
        Self::Any(Vec::new())
    }
}

impl FromIterator<Value> for ShownItems {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        Self::Any(items.into_iter().collect())
    }
}

impl Serialize for ShownItems {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Any(items) => items.serialize(serializer),
            Self::Text(message) => {
                let mut items = serializer.serialize_seq(Some(1))?;
                items.serialize_element(message)?;
                items.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for ShownItems {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::Any)
    }
}

impl Serialize for TextMessage {
    /// In the order in which items are written elsewhere.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Written<'m> {
            id: &'m str,
            r#type: &'static str,
            status: &'static str,
            role: &'static str,
            content: [Part<'m>; 1],
        }
        #[derive(Serialize)]
        struct Part<'m> {
            r#type: &'static str,
            text: &'m str,
            annotations: [(); 0],
            logprobs: [(); 0],
        }
        let part = Part {
            r#type: "output_text",
            text: &self.text,
            annotations: [],
            logprobs: [],
        };
        let written = Written {
            id: &self.id,
            r#type: "message",
            status: "completed",
            role: "assistant",
            content: [part],
        };
        written.serialize(serializer)
    }
}

//! Items and their parts as JSON.
//!
//! What comes in: members, in whatever order. What goes out: items, and the same members again. Every
//! answer and every stored conversation passes here, so members are moved and not copied.

use serde::de::{DeserializeOwned, Error};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::item::{
    CallOutput, ContentPart, FunctionCall, FunctionCallOutput, Item, Message, Reasoning,
};

type Members = Map<String, Value>;

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum Known<'a> {
            Message(&'a Message),
            FunctionCall(&'a FunctionCall),
            FunctionCallOutput(&'a FunctionCallOutput),
            Reasoning(&'a Reasoning),
        }
        match self {
            Self::Message(item) => Known::Message(item).serialize(serializer),
            Self::FunctionCall(item) => Known::FunctionCall(item).serialize(serializer),
            Self::FunctionCallOutput(item) => Known::FunctionCallOutput(item).serialize(serializer),
            Self::Reasoning(item) => Known::Reasoning(item).serialize(serializer),
            Self::Other(members) => members.serialize(serializer),
        }
    }
}

impl Item {
    /// An item of these members.
    ///
    /// ```
    /// use haft_core::Item;
    /// let members = serde_json::from_str(r#"{"role":"user","content":"hi"}"#)?;
    /// assert_eq!(Item::from_members(members)?, Item::user("hi"));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn from_members(members: Map<String, Value>) -> Result<Self, serde_json::Error> {
        read_item(members)
    }
}

fn read_item<E: Error>(members: Members) -> Result<Item, E> {
    match members.get("type") {
        // The short form of a message.
        None if members.contains_key("role") => read_message(members).map(Item::Message),
        Some(Value::String(kind)) => match kind.as_str() {
            "message" => read_message(members).map(Item::Message),
            "function_call" => read_call(members).map(Item::FunctionCall),
            "function_call_output" => read_output(members).map(Item::FunctionCallOutput),
            "reasoning" => read_reasoning(members).map(Item::Reasoning),
            _ => Ok(Item::Other(members)),
        },
        _ => Err(E::custom("an item needs a `type`")),
    }
}

macro_rules! read_from_members {
    ($($item:ty: $read:ident),+) => {
        $(impl<'de> Deserialize<'de> for $item {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $read(Map::deserialize(deserializer)?)
            }
        })+
    };
}

read_from_members!(
    Item: read_item,
    Message: read_message,
    FunctionCall: read_call,
    FunctionCallOutput: read_output,
    Reasoning: read_reasoning
);

/// A member of its type.
fn read<T: DeserializeOwned, E: Error>(value: Value) -> Result<T, E> {
    T::deserialize(value).map_err(E::custom)
}

fn read_message<E: Error>(members: Members) -> Result<Message, E> {
    let (mut id, mut status, mut role, mut content) = (None, None, None, None);
    let mut extra = Map::new();
    for (key, value) in members {
        match key.as_str() {
            "type" => {}
            "id" => id = read(value)?,
            "status" => status = read(value)?,
            "role" => role = Some(read(value)?),
            "content" => content = Some(read_content(value)?),
            _ => {
                extra.insert(key, value);
            }
        }
    }
    Ok(Message {
        id,
        status,
        role: role.ok_or_else(|| E::missing_field("role"))?,
        content: content.ok_or_else(|| E::missing_field("content"))?,
        extra,
    })
}

fn read_call<E: Error>(members: Members) -> Result<FunctionCall, E> {
    let (mut id, mut status, mut call_id, mut name, mut arguments) = (None, None, None, None, None);
    let mut extra = Map::new();
    for (key, value) in members {
        match key.as_str() {
            "type" => {}
            "id" => id = read(value)?,
            "status" => status = read(value)?,
            "call_id" => call_id = Some(read(value)?),
            "name" => name = Some(read(value)?),
            "arguments" => arguments = Some(read(value)?),
            _ => {
                extra.insert(key, value);
            }
        }
    }
    Ok(FunctionCall {
        id,
        status,
        call_id: call_id.ok_or_else(|| E::missing_field("call_id"))?,
        name: name.ok_or_else(|| E::missing_field("name"))?,
        arguments: arguments.ok_or_else(|| E::missing_field("arguments"))?,
        extra,
    })
}

fn read_output<E: Error>(members: Members) -> Result<FunctionCallOutput, E> {
    let (mut id, mut status, mut call_id, mut output) = (None, None, None, None);
    let mut is_error = false;
    let mut extra = Map::new();
    for (key, value) in members {
        match key.as_str() {
            "type" => {}
            "id" => id = read(value)?,
            "status" => status = read(value)?,
            "call_id" => call_id = Some(read(value)?),
            "output" => {
                output = Some(match value {
                    Value::String(text) => CallOutput::Text(text),
                    parts => CallOutput::Parts(read_parts(parts)?),
                });
            }
            "is_error" => is_error = read(value)?,
            _ => {
                extra.insert(key, value);
            }
        }
    }
    Ok(FunctionCallOutput {
        id,
        status,
        call_id: call_id.ok_or_else(|| E::missing_field("call_id"))?,
        output: output.ok_or_else(|| E::missing_field("output"))?,
        is_error,
        extra,
    })
}

fn read_reasoning<E: Error>(members: Members) -> Result<Reasoning, E> {
    let mut reasoning = Reasoning::default();
    for (key, value) in members {
        match key.as_str() {
            "type" => {}
            "id" => reasoning.id = read(value)?,
            "status" => reasoning.status = read(value)?,
            "summary" => reasoning.summary = read_parts(value)?,
            "content" => reasoning.content = read_parts(value)?,
            "encrypted_content" => reasoning.encrypted_content = read(value)?,
            _ => {
                reasoning.extra.insert(key, value);
            }
        }
    }
    Ok(reasoning)
}

/// What a message says. A bare string is one part of text.
fn read_content<E: Error>(value: Value) -> Result<Vec<ContentPart>, E> {
    match value {
        Value::String(text) => Ok(vec![ContentPart::InputText { text }]),
        parts => read_parts(parts),
    }
}

fn read_parts<E: Error>(value: Value) -> Result<Vec<ContentPart>, E> {
    let Value::Array(parts) = value else {
        return Err(E::custom("expected text or a list of parts"));
    };
    let parts = parts.into_iter().map(|part| match part {
        Value::Object(members) => Ok(ContentPart::of(members)),
        _ => Err(E::custom("a part of an item is no object")),
    });
    parts.collect()
}

impl Serialize for ContentPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (name, text) = match self {
            Self::Other(members) => return members.serialize(serializer),
            Self::InputText { text }
            | Self::OutputText { text, .. }
            | Self::ReasoningText { text }
            | Self::SummaryText { text } => ("text", text),
            Self::InputImage { image_url, .. } => ("image_url", image_url),
            Self::Refusal { refusal } => ("refusal", refusal),
        };
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("type", self.kind())?;
        members.serialize_entry(name, text)?;
        match self {
            Self::InputImage { detail, .. } => {
                members.serialize_entry("detail", detail.as_deref().unwrap_or("auto"))?;
            }
            Self::OutputText {
                annotations, extra, ..
            } => {
                members.serialize_entry("annotations", annotations)?;
                for (key, value) in extra {
                    members.serialize_entry(key, value)?;
                }
            }
            _ => {}
        }
        members.end()
    }
}

impl<'de> Deserialize<'de> for ContentPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::of)
    }
}

impl ContentPart {
    /// The part, if every member of it is known here; others are kept as they came.
    fn of(mut members: Members) -> Self {
        let kind = members.get("type").and_then(Value::as_str);
        let is_text = |key: &str| members.get(key).is_some_and(Value::is_string);
        let only = |keys: &[&str]| members.keys().all(|key| keys.contains(&key.as_str()));
        let (known, key) = match kind {
            Some("input_text") if only(&["type", "text"]) => (Known::InputText, "text"),
            Some("input_image") if only(&["type", "image_url", "detail"]) => {
                (Known::InputImage, "image_url")
            }
            Some("output_text") => (Known::OutputText, "text"),
            Some("refusal") if only(&["type", "refusal"]) => (Known::Refusal, "refusal"),
            Some("reasoning_text") if only(&["type", "text"]) => (Known::ReasoningText, "text"),
            Some("summary_text") if only(&["type", "text"]) => (Known::SummaryText, "text"),
            _ => return Self::Other(members),
        };
        if !is_text(key) {
            return Self::Other(members);
        }
        let mut take = |key: &str| match members.shift_remove(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let text = take(key).unwrap_or_default();
        match known {
            Known::InputText => Self::InputText { text },
            Known::InputImage => Self::InputImage {
                image_url: text,
                detail: take("detail"),
            },
            Known::OutputText => {
                members.shift_remove("type");
                let annotations = match members.shift_remove("annotations") {
                    Some(Value::Array(annotations)) => annotations,
                    _ => Vec::new(),
                };
                Self::OutputText {
                    text,
                    annotations,
                    extra: members,
                }
            }
            Known::Refusal => Self::Refusal { refusal: text },
            Known::ReasoningText => Self::ReasoningText { text },
            Known::SummaryText => Self::SummaryText { text },
        }
    }
}

/// The parts that are known here.
#[derive(Clone, Copy)]
enum Known {
    InputText,
    InputImage,
    OutputText,
    Refusal,
    ReasoningText,
    SummaryText,
}

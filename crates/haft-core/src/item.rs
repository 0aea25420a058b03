//! The items of a conversation, in the form of the Open Responses API.
//!
//! This is the one form in which conversations are kept; only model adapters translate it. What the
//! API adds later, or a vendor beside it, survives: unknown fields stay in `extra`, unknown items
//! and content parts as they came.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One item of a conversation.
///
/// ```
/// use haft_core::Item;
/// let item: Item = serde_json::from_str(
///     r#"{"type":"function_call","call_id":"call_1","name":"ping","arguments":"{}","x":1}"#,
/// )?;
/// let Item::FunctionCall(call) = &item else { unreachable!() };
/// assert_eq!((call.name.as_str(), &call.extra["x"]), ("ping", &serde_json::json!(1)));
/// assert_eq!(Item::user("hi").text(), "hi");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Item {
    /// Somebody said something.
    Message(Message),
    /// The model calls a tool.
    FunctionCall(FunctionCall),
    /// What came of a call.
    FunctionCallOutput(FunctionCallOutput),
    /// What the model thought.
    Reasoning(Reasoning),
    /// Any other item, as it came.
    Other(Map<String, Value>),
}

impl Item {
    /// A message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::Message(Message::new(Role::User, text))
    }

    /// A message of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Message(Message::new(Role::Assistant, text))
    }

    /// A message of the host, with more weight than the user's.
    pub fn developer(text: impl Into<String>) -> Self {
        Self::Message(Message::new(Role::Developer, text))
    }

    /// A call of a tool.
    pub fn function_call(
        call_id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        Self::FunctionCall(FunctionCall {
            id: None,
            call_id: call_id.into(),
            name: name.into(),
            arguments: arguments.into(),
            status: None,
            extra: Map::new(),
        })
    }

    /// What came of a call, in words.
    pub fn function_call_output(call_id: impl Into<String>, output: impl Into<String>) -> Self {
        Self::FunctionCallOutput(FunctionCallOutput::new(call_id, output))
    }

    /// What the item's `type` says.
    pub fn kind(&self) -> &str {
        match self {
            Self::Message(_) => "message",
            Self::FunctionCall(_) => "function_call",
            Self::FunctionCallOutput(_) => "function_call_output",
            Self::Reasoning(_) => "reasoning",
            Self::Other(members) => members.get("type").and_then(Value::as_str).unwrap_or(""),
        }
    }

    /// Its own id, if it has one. That of a call is another: `call_id`.
    ///
    /// ```
    /// use haft_core::Item;
    /// let item: Item = serde_json::from_str(r#"{"type":"mcp_call","id":"mcp_1"}"#)?;
    /// assert_eq!((item.id(), Item::user("hi").id()), (Some("mcp_1"), None));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Message(message) => message.id.as_deref(),
            Self::FunctionCall(call) => call.id.as_deref(),
            Self::FunctionCallOutput(output) => output.id.as_deref(),
            Self::Reasoning(reasoning) => reasoning.id.as_deref(),
            Self::Other(members) => members.get("id").and_then(Value::as_str),
        }
        .filter(|id| !id.is_empty())
    }

    /// Gives it an id of its own.
    pub fn set_id(&mut self, id: impl Into<String>) {
        let id = id.into();
        match self {
            Self::Message(message) => message.id = Some(id),
            Self::FunctionCall(call) => call.id = Some(id),
            Self::FunctionCallOutput(output) => output.id = Some(id),
            Self::Reasoning(reasoning) => reasoning.id = Some(id),
            Self::Other(members) => {
                members.insert("id".into(), id.into());
            }
        }
    }

    /// The text of a message; empty for every other item.
    pub fn text(&self) -> String {
        match self {
            Self::Message(message) => message.text(),
            _ => String::new(),
        }
    }
}

/// How far an item has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// It is being produced.
    InProgress,
    /// It is final.
    Completed,
    /// The token limit fell into it.
    Incomplete,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The host, in the older word.
    System,
    /// The host.
    Developer,
}

/// Somebody said something.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Message {
    /// The item's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// How far it has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ItemStatus>,
    /// Who.
    pub role: Role,
    /// What. A bare string is read as one part of text.
    pub content: Vec<ContentPart>,
    /// What else was there.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Message {
    /// A message of plain text.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        let text = text.into();
        let part = match role {
            Role::Assistant => ContentPart::output_text(text),
            _ => ContentPart::InputText { text },
        };
        Self {
            id: None,
            status: None,
            role,
            content: vec![part],
            extra: Map::new(),
        }
    }

    /// The text of all parts, one after the other.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(ContentPart::text).collect()
    }
}

/// A piece of a message, or of a tool's output.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ContentPart {
    /// Text for the model.
    InputText {
        /// The text.
        text: String,
    },
    /// An image for the model.
    InputImage {
        /// An address, or a `data:` one with the bytes.
        image_url: String,
        /// `low`, `high` or `auto`.
        detail: Option<String>,
    },
    /// Text of the model.
    OutputText {
        /// The text.
        text: String,
        /// Citations, as they came.
        annotations: Vec<Value>,
        /// What else was there, `logprobs` for one.
        extra: Map<String, Value>,
    },
    /// The model declines, in these words.
    Refusal {
        /// The words.
        refusal: String,
    },
    /// What the model thought.
    ReasoningText {
        /// The thought.
        text: String,
    },
    /// A summary of what it thought.
    SummaryText {
        /// The summary.
        text: String,
    },
    /// Any other part, as it came.
    Other(Map<String, Value>),
}

impl ContentPart {
    /// Text of the model, without citations.
    pub fn output_text(text: impl Into<String>) -> Self {
        Self::OutputText {
            text: text.into(),
            annotations: Vec::new(),
            extra: Map::new(),
        }
    }

    /// What the part's `type` says.
    pub fn kind(&self) -> &str {
        match self {
            Self::InputText { .. } => "input_text",
            Self::InputImage { .. } => "input_image",
            Self::OutputText { .. } => "output_text",
            Self::Refusal { .. } => "refusal",
            Self::ReasoningText { .. } => "reasoning_text",
            Self::SummaryText { .. } => "summary_text",
            Self::Other(members) => members.get("type").and_then(Value::as_str).unwrap_or(""),
        }
    }

    /// Its text, if it has any. A refusal is not text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::InputText { text }
            | Self::OutputText { text, .. }
            | Self::ReasoningText { text }
            | Self::SummaryText { text } => Some(text),
            _ => None,
        }
    }
}

/// The model calls a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionCall {
    /// The item's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// How far it has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ItemStatus>,
    /// The call's id: its output bears the same.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// The arguments as the model wrote them, byte for byte.
    pub arguments: String,
    /// What else was there.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl FunctionCall {
    /// Whether the call was recovered from text content.
    pub fn is_recovered(&self) -> bool {
        self.extra.get("recovered") == Some(&Value::Bool(true))
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionCallOutput {
    /// The item's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// How far it has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ItemStatus>,
    /// The call that it answers.
    pub call_id: String,
    /// What the model reads.
    pub output: CallOutput,
    /// Whether it tells of a failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// What else was there.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl FunctionCallOutput {
    /// A result in words.
    pub fn new(call_id: impl Into<String>, output: impl Into<String>) -> Self {
        Self {
            id: None,
            status: None,
            call_id: call_id.into(),
            output: CallOutput::Text(output.into()),
            is_error: false,
            extra: Map::new(),
        }
    }

    /// Marks it as telling of a failure.
    #[must_use]
    pub fn as_error(mut self) -> Self {
        self.is_error = true;
        self
    }
}

/// A call's output: text, or text and images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CallOutput {
    /// Text.
    Text(String),
    /// Parts, in order.
    Parts(Vec<ContentPart>),
}

impl CallOutput {
    /// The text of it; what is not text is named in brackets.
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Parts(parts) => {
                let pieces: Vec<_> = parts
                    .iter()
                    .map(|part| match part {
                        ContentPart::InputImage { .. } => "[image]",
                        other => other.text().unwrap_or("[unsupported content]"),
                    })
                    .collect();
                pieces.join("\n\n")
            }
        }
    }
}

impl From<&str> for CallOutput {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for CallOutput {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// What the model thought.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Reasoning {
    /// The item's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// How far it has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ItemStatus>,
    /// The summary, where the provider gives one.
    pub summary: Vec<ContentPart>,
    /// The thoughts themselves, where the provider gives them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<ContentPart>,
    /// What only the provider reads, to be sent back unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted_content: Option<String>,
    /// What else was there.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Reasoning {
    /// The raw reasoning text, or the summary where there is no raw text.
    ///
    /// ```
    /// use haft_core::{ContentPart, Reasoning};
    /// let mut reasoning = Reasoning {
    ///     summary: vec![ContentPart::SummaryText { text: "Looked it up.".into() }],
    ///     ..Reasoning::default()
    /// };
    /// assert_eq!(reasoning.text(), "Looked it up.");
    /// reasoning.content = vec![ContentPart::ReasoningText { text: "Let me see …".into() }];
    /// assert_eq!(reasoning.text(), "Let me see …");
    /// ```
    pub fn text(&self) -> String {
        let raw: String = self.content.iter().filter_map(ContentPart::text).collect();
        if !raw.is_empty() {
            return raw;
        }
        let parts = self.summary.iter().filter_map(ContentPart::text);
        parts.collect::<Vec<_>>().join("\n\n")
    }

    /// Whether only the provider that made it can read it: `encrypted_content` is set.
    pub fn is_encrypted(&self) -> bool {
        let encrypted = self.encrypted_content.as_deref();
        encrypted.is_some_and(|encrypted| !encrypted.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_item_survives_the_wire() {
        for json in [
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}),
            json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
                "content": [{"type": "output_text", "text": "a", "annotations": []},
                            {"type": "refusal", "refusal": "no"}], "phase": "final"}),
            json!({"type": "message", "role": "assistant", "content": [
                {"type": "output_text", "text": "a", "annotations": [], "logprobs": [{"t": 1}]},
                {"type": "refusal", "refusal": "no", "why": "x"}]}),
            json!({"type": "function_call", "call_id": "c", "name": "n", "arguments": " {\"a\" :1}"}),
            json!({"type": "function_call_output", "call_id": "c", "output": "o", "is_error": true}),
            json!({"type": "function_call_output", "call_id": "c",
                "output": [{"type": "input_image", "image_url": "data:x", "detail": "auto"}]}),
            json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "s"}],
                "encrypted_content": "zzz"}),
            json!({"type": "mcp_call", "server_label": "air", "name": "find", "arguments": "{}"}),
            json!({"type": "message", "role": "user", "content": [{"type": "input_file", "file_id": "f"}]}),
            json!({"type": "message", "role": "user",
                "content": [{"type": "input_image", "file_id": "f", "detail": "low"}]}),
        ] {
            let item: Item = serde_json::from_value(json.clone()).unwrap();
            assert_eq!(serde_json::to_value(&item).unwrap(), json);
        }
    }

    #[test]
    fn the_short_form_of_a_message_is_read() {
        let item: Item = serde_json::from_value(json!({"role": "user", "content": "hi"})).unwrap();
        assert_eq!(item, Item::user("hi"));
    }

    #[test]
    fn an_item_without_type_is_refused() {
        let error = serde_json::from_value::<Item>(json!({"call_id": "c"})).unwrap_err();
        assert!(error.to_string().contains("`type`"));
    }
}

//! A tool call as the model wrote it, before anything was made of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Why the provider says that the model stopped writing.
///
/// It decides what a text without its closing brackets is worth: after a normal stop they may be
/// appended, after anything else the text counts as cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// A normal stop, or a stop for tool calls.
    Normal,
    /// The token limit was reached.
    Length,
    /// The provider's content filter cut the answer off.
    ContentFilter,
    /// The provider failed, or its stream broke.
    Error,
    /// Nobody said.
    #[default]
    Unknown,
}

/// The arguments of a call exactly as they arrived.
///
/// ```
/// use haft_core::RawArguments;
/// let text: RawArguments = r#"{"city":"Oslo"}"#.into();
/// let json: RawArguments = serde_json::json!({"city": "Oslo"}).into();
/// assert_ne!(text, json);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RawArguments {
    /// Text, byte for byte.
    Text(String),
    /// A JSON value, from providers that send objects.
    Json(Value),
}

impl From<&str> for RawArguments {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for RawArguments {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Value> for RawArguments {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

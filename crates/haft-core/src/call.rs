//! A tool call as the model wrote it, before anything was made of it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::provenance::CallSource;

/// Why the provider says that the model stopped writing.
///
/// It decides what a text without its closing brackets is worth: after a normal stop they may be
/// appended, after anything else the text counts as cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
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

impl fmt::Display for RawArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Json(value) => value.fmt(f),
        }
    }
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

/// A call as it comes from a model adapter.
///
/// ```
/// use haft_core::ToolCall;
/// let call = ToolCall::new("get_weather", r#"{"city":"Oslo"}"#).with_id("call_1");
/// assert_eq!(call.name, "get_weather");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The provider's id of the call, if it gives one.
    pub call_id: Option<String>,
    /// The arguments, untouched.
    pub arguments: RawArguments,
    /// Why the model stopped writing.
    pub finish: FinishReason,
    /// Where the call came from.
    pub source: Option<CallSource>,
}

impl ToolCall {
    /// A call without id and source that ended for an unknown reason.
    pub fn new(name: impl Into<String>, arguments: impl Into<RawArguments>) -> Self {
        Self {
            name: name.into(),
            call_id: None,
            arguments: arguments.into(),
            finish: FinishReason::Unknown,
            source: None,
        }
    }

    /// Sets the provider's id.
    #[must_use]
    pub fn with_id(mut self, call_id: impl Into<String>) -> Self {
        self.call_id = Some(call_id.into());
        self
    }

    /// Sets why the model stopped writing.
    #[must_use]
    pub fn finished(mut self, finish: FinishReason) -> Self {
        self.finish = finish;
        self
    }

    /// Sets where the call came from.
    #[must_use]
    pub fn from_source(mut self, source: CallSource) -> Self {
        self.source = Some(source);
        self
    }
}

//! What requests end with.

use serde_json::{Map, Value, json};

use super::tool::CacheHints;

/// The result of a call, in the words of the protocol and unchanged by the gateway.
///
/// ```
/// use haft_mcp::gateway::CallOutcome;
/// let outcome = CallOutcome::error("no such file");
/// assert!(outcome.is_error);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallOutcome {
    /// The content blocks, each with its `type`. A block that the protocol does not know is replaced by
    /// a text that says so.
    pub content: Vec<Value>,
    /// Any JSON value; an explicit `null` is not the same as none.
    pub structured: Option<Value>,
    /// Whether it is a failure, for the model to read.
    pub is_error: bool,
    /// What else the server said.
    pub meta: Option<Map<String, Value>>,
}

impl CallOutcome {
    /// A result that is a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![json!({"type": "text", "text": text.into()})],
            ..Self::default()
        }
    }

    /// A failure that the model reads.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// With a structured value beside the content.
    #[must_use]
    pub fn with_structured(mut self, value: Value) -> Self {
        self.structured = Some(value);
        self
    }
}

/// A prompt that is listed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ListedPrompt {
    /// Its name.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What it takes.
    pub arguments: Vec<PromptArgument>,
    /// The label of the server that it belongs to, if it belongs to one.
    pub server: Option<String>,
    /// Icons in the words of the protocol.
    pub icons: Option<Value>,
    /// The server's `_meta`.
    pub meta: Option<Map<String, Value>>,
}

/// A text that a prompt takes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it means.
    pub description: Option<String>,
    /// Whether it must be there.
    pub required: bool,
}

/// A prompt, filled in.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PromptOutcome {
    /// What it is for.
    pub description: Option<String>,
    /// The messages.
    pub messages: Vec<PromptMessage>,
    /// The server's `_meta`.
    pub meta: Option<Map<String, Value>>,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMessage {
    /// Whether the model says it; otherwise the user does.
    pub from_model: bool,
    /// One content block in the words of the protocol.
    pub content: Value,
}

/// A resource, or a family of them, that is listed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ListedResource {
    /// Its address; for a family the template of the addresses.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// What is in it.
    pub description: Option<String>,
    /// Of which type.
    pub mime_type: Option<String>,
    /// The label of the server that it belongs to, if it belongs to one.
    pub server: Option<String>,
    /// Its size in bytes, if it is known.
    pub size: Option<u64>,
    /// `audience`, `priority` and `lastModified` in the words of the protocol.
    pub annotations: Option<Value>,
    /// Icons in the words of the protocol.
    pub icons: Option<Value>,
    /// The server's `_meta`.
    pub meta: Option<Map<String, Value>>,
}

/// A resource that was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReadOutcome {
    /// Texts and blobs in the words of the protocol.
    pub contents: Vec<Value>,
    /// How long, and by whom, they may be kept.
    pub hints: CacheHints,
    /// The server's `_meta`.
    pub meta: Option<Map<String, Value>>,
}

/// A list of what is not tools.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing<T> {
    /// The items, in a stable order.
    pub items: Vec<T>,
    /// How long, and by whom, the list may be kept.
    pub hints: CacheHints,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            hints: CacheHints::default(),
        }
    }
}

/// Suggestions for a text that is being typed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Completion {
    /// The best first; the protocol takes a hundred.
    pub values: Vec<String>,
    /// How many there are in all.
    pub total: Option<u32>,
    /// Whether there are more.
    pub has_more: bool,
}

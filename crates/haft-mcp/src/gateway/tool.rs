//! A tool as the gateway lists it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use haft_core::Validator;
use serde_json::{Map, Value};

/// A tool under its exposed name, otherwise as its server describes it.
///
/// ```
/// use haft_mcp::gateway::ListedTool;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
/// let tool = ListedTool::new("files__read", schema.as_object().cloned().unwrap_or_default())
///     .described("Reads a file.")
///     .of_server("files", "read");
/// assert_eq!(tool.server.as_deref(), Some("files"));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ListedTool {
    /// The name that clients see and call. Unique in a list.
    pub name: String,
    /// The label of the server that it belongs to; none for a native tool.
    pub server: Option<String>,
    /// The name by which its server knows it. Search finds it too.
    pub raw_name: Option<String>,
    /// For people.
    pub title: Option<String>,
    /// For the model.
    pub description: Option<String>,
    /// What it takes, unchanged.
    pub input_schema: Arc<Map<String, Value>>,
    /// What it gives, unchanged.
    pub output_schema: Option<Arc<Map<String, Value>>>,
    /// Hints in the words of the protocol (`readOnlyHint` and so on).
    pub annotations: Option<Map<String, Value>>,
    /// Pictures in the words of the protocol.
    pub icons: Option<Value>,
    /// What else its server says about it.
    pub meta: Option<Map<String, Value>>,
    /// Whether it is listed even where the others hide behind the facade (`defer = "never"`).
    pub always_listed: bool,
    /// Who knows better than the schema what it takes.
    pub validator: Option<OwnValidator>,
}

/// A validator that a tool brings itself. Two are the same if they are one.
#[derive(Clone)]
pub struct OwnValidator(pub Arc<dyn Validator>);

impl fmt::Debug for OwnValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnValidator").field(&self.0.name()).finish()
    }
}

impl PartialEq for OwnValidator {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl ListedTool {
    /// A native tool with nothing but a name and a schema.
    pub fn new(name: impl Into<String>, input_schema: impl Into<Arc<Map<String, Value>>>) -> Self {
        Self {
            name: name.into(),
            server: None,
            raw_name: None,
            title: None,
            description: None,
            input_schema: input_schema.into(),
            output_schema: None,
            annotations: None,
            icons: None,
            meta: None,
            always_listed: false,
            validator: None,
        }
    }

    /// With a description.
    #[must_use]
    pub fn described(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// With a title.
    #[must_use]
    pub fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// As a tool of the server with this label, which calls it `raw_name`.
    #[must_use]
    pub fn of_server(mut self, label: impl Into<String>, raw_name: impl Into<String>) -> Self {
        self.server = Some(label.into());
        self.raw_name = Some(raw_name.into());
        self
    }

    /// With a schema of what it gives.
    #[must_use]
    pub fn giving(mut self, output_schema: impl Into<Arc<Map<String, Value>>>) -> Self {
        self.output_schema = Some(output_schema.into());
        self
    }

    /// With annotations.
    #[must_use]
    pub fn annotated(mut self, annotations: Map<String, Value>) -> Self {
        self.annotations = Some(annotations);
        self
    }

    /// Listed in every mode.
    #[must_use]
    pub fn always_listed(mut self) -> Self {
        self.always_listed = true;
        self
    }

    /// About how many bytes its definition costs in a prompt.
    pub(super) fn weight(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.name.len()
            + text(&self.title)
            + text(&self.description)
            + object_weight(&self.input_schema)
            + self.output_schema.as_deref().map_or(0, object_weight)
    }
}

/// The length of an object as compact JSON, within a few bytes, without writing it.
fn object_weight(object: &Map<String, Value>) -> usize {
    let members = object.iter();
    2 + members
        .map(|(key, value)| key.len() + 4 + value_weight(value))
        .sum::<usize>()
}

fn value_weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|it| value_weight(it) + 1).sum::<usize>(),
        Value::Object(object) => object_weight(object),
    }
}

/// All tools that a caller may use, in the order in which they are listed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolList {
    /// The tools. The order must not depend on who connected first or on a hash map.
    pub tools: Vec<Arc<ListedTool>>,
    /// How long, and by whom, the list may be kept.
    pub hints: CacheHints,
}

/// How long an answer stays fresh and whether others may see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheHints {
    /// Fresh for so long; the smallest value of all parts.
    pub ttl: Duration,
    /// The same for every caller. If any part is private, the whole is.
    pub public: bool,
}

impl CacheHints {
    /// The hints of a whole that has parts with these and with the other hints.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        Self {
            ttl: self.ttl.min(other.ttl),
            public: self.public && other.public,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_is_as_short_lived_and_as_private_as_its_parts() {
        let long = CacheHints {
            ttl: Duration::from_mins(1),
            public: true,
        };
        let short = CacheHints {
            ttl: Duration::from_secs(5),
            public: false,
        };
        assert_eq!(long.joined(short), short);
        assert_eq!(long.joined(long), long);
    }

    #[test]
    fn the_weight_is_about_the_length_of_the_definition() {
        let schema = serde_json::json!({
            "type": "object",
            "properties": {"path": {"type": "string", "maxLength": 4096}, "deep": {"enum": [1, true, null]}},
            "required": ["path"]
        });
        let written = schema.to_string().len();
        let tool = ListedTool::new("t", schema.as_object().unwrap().clone());
        assert!(
            tool.weight().abs_diff(written) < 20,
            "{} and {written}",
            tool.weight()
        );
    }
}

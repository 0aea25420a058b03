//! The authoritative definition of a tool.
//!
//! One frozen value per tool is the source of everything that is said about it: validation,
//! provider views, documentation, audit. Whoever needs something derived (compiled validators,
//! wire names, scores) keeps it in a table of its own, by [`Fingerprint`].

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::annotations::Annotations;
use crate::definition_builder::ToolDefinitionBuilder;
use crate::definition_error::DefinitionError;
use crate::definition_json;
use crate::kind::ToolKind;
use crate::name::{ToolName, hex};

/// What a tool without a schema may do. There is no default: it is opted into by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoSchemaMode {
    /// Runs unasked only if annotated read-only, and sees that it must only read.
    ReadOnly,
    /// Every call needs a person.
    HumanApproval,
    /// Needs approval unless the run allows unvalidated calls.
    Full,
}

/// The SHA-256 of a definition's canonical JSON, in lower-case hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fingerprint(pub(crate) Box<str>);

impl Fingerprint {
    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One tool, frozen.
///
/// ```
/// use haft_core::ToolDefinition;
/// use serde_json::json;
///
/// let weather = ToolDefinition::builder("get_weather")
///     .description("Get the weather for a city.")
///     .parameters(json!({
///         "type": "object",
///         "properties": {"city": {"type": "string"}},
///         "required": ["city"]
///     }))
///     .build()?;
/// assert_eq!(weather.name().as_str(), "get_weather");
/// assert_eq!(weather.brief(), "Get the weather for a city.");
///
/// // Fail closed: no schema, no tool.
/// assert!(ToolDefinition::builder("anything_goes").build().is_err());
/// # Ok::<(), haft_core::DefinitionError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    pub(crate) name: ToolName,
    pub(crate) description: Option<String>,
    pub(crate) brief: String,
    pub(crate) parameters: Result<Value, NoSchemaMode>,
    pub(crate) output_schema: Option<Value>,
    pub(crate) kind: ToolKind,
    pub(crate) strict: Option<bool>,
    pub(crate) annotations: Annotations,
    pub(crate) fingerprint: Fingerprint,
}

impl ToolDefinition {
    /// Starts a definition.
    pub fn builder(name: impl Into<String>) -> ToolDefinitionBuilder {
        ToolDefinitionBuilder::new(name.into())
    }

    /// Reads the JSON form. Unknown top-level keys are an error.
    ///
    /// ```
    /// use haft_core::ToolDefinition;
    /// let definition = ToolDefinition::from_json(serde_json::json!({
    ///     "type": "function",
    ///     "name": "ping",
    ///     "parameters": {"type": "object"}
    /// }))?;
    /// assert_eq!(definition.to_json()["name"], "ping");
    /// # Ok::<(), haft_core::DefinitionError>(())
    /// ```
    pub fn from_json(json: Value) -> Result<Arc<Self>, DefinitionError> {
        definition_json::read(json)?.build()
    }

    /// The name, also on the wire.
    pub fn name(&self) -> &ToolName {
        &self.name
    }

    /// The full description, as the author wrote it.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// One line, at most 120 characters: the author's, or the beginning of the description.
    pub fn brief(&self) -> &str {
        &self.brief
    }

    /// The parameter schema; absent for a tool that opted out of one.
    pub fn parameters(&self) -> Option<&Value> {
        self.parameters.as_ref().ok()
    }

    /// What a tool without schema opted into.
    pub fn no_schema_mode(&self) -> Option<NoSchemaMode> {
        self.parameters.as_ref().err().copied()
    }

    /// The schema of results, where one is declared.
    pub fn output_schema(&self) -> Option<&Value> {
        self.output_schema.as_ref()
    }

    /// Who executes its calls.
    pub fn kind(&self) -> &ToolKind {
        &self.kind
    }

    /// Whether providers that know it shall follow the schema strictly.
    pub fn strict(&self) -> Option<bool> {
        self.strict
    }

    /// What else the author says.
    pub fn annotations(&self) -> &Annotations {
        &self.annotations
    }

    /// The hash of the canonical JSON form.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// The JSON form, as a new value.
    pub fn to_json(&self) -> Value {
        let mut json = Map::new();
        json.insert("type".into(), "function".into());
        json.insert("name".into(), self.name.as_str().into());
        if let Some(description) = &self.description {
            json.insert("description".into(), description.as_str().into());
        }
        match &self.parameters {
            Ok(schema) => {
                json.insert("parameters".into(), schema.clone());
            }
            Err(mode) => {
                json.insert("allowNoSchema".into(), true.into());
                json.insert("noSchemaMode".into(), to_value(mode));
            }
        }
        if let Some(schema) = &self.output_schema {
            json.insert("outputSchema".into(), schema.clone());
        }
        if let Some(strict) = self.strict {
            json.insert("strict".into(), strict.into());
        }
        if !self.annotations.is_empty() {
            json.insert("annotations".into(), to_value(&self.annotations));
        }
        Value::Object(json)
    }

    /// The same tool under another name, as a definition of its own.
    ///
    /// The name it had is kept in `annotations.origin`, unless it already came from elsewhere.
    #[must_use]
    pub fn renamed(&self, name: ToolName) -> Self {
        let mut copy = self.clone();
        if copy.annotations.origin.is_none() {
            copy.annotations.origin = Some(String::from(copy.name));
        }
        copy.name = name;
        copy.fingerprint = fingerprint(&copy.to_json());
        copy
    }

    /// The same tool, executed by somebody else. The fingerprint stays: the kind is not part of it.
    #[must_use]
    pub fn of_kind(&self, kind: ToolKind) -> Self {
        Self {
            kind,
            ..self.clone()
        }
    }
}

/// Serialises one of this crate's own plain types, which cannot fail.
fn to_value<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

/// JSON text with members sorted and without blanks: equal values give equal bytes.
///
/// ```
/// use haft_core::canonical_json;
/// assert_eq!(canonical_json(&serde_json::json!({"b": 1, "a": [true]})), r#"{"a":[true],"b":1}"#);
/// ```
pub fn canonical_json(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted.to_string()
}

pub(crate) fn fingerprint(json: &Value) -> Fingerprint {
    Fingerprint(hex(&Sha256::digest(canonical_json(json).as_bytes())).into())
}

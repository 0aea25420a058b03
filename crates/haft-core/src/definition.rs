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

use crate::annotations::{Annotations, Example};
use crate::kind::ToolKind;
use crate::name::{NameError, ToolName, hex};
use crate::prose::brief_of;
use crate::schema;

/// The longest description, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 4096;

/// Why a definition could not be built. Each says what the author has to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// The name is not legal.
    #[error(transparent)]
    InvalidName(#[from] NameError),
    /// No schema and no opt-in.
    #[error(
        "tool '{tool}' has no parameter schema; add one or set allowNoSchema with a noSchemaMode"
    )]
    MissingSchema {
        /// The tool.
        tool: String,
    },
    /// The schema cannot be used.
    #[error("tool `{tool}` has an invalid schema: {reason}")]
    InvalidSchema {
        /// The tool.
        tool: String,
        /// What is wrong.
        reason: String,
    },
    /// The schema refers to something outside itself, which is never fetched.
    #[error(
        "tool `{tool}` refers to `{reference}`, which is outside its schema and is never fetched: \
         copy it into `$defs` and refer to it with `#/$defs/…`"
    )]
    RemoteRef {
        /// The tool.
        tool: String,
        /// The reference as written.
        reference: String,
    },
    /// `allowNoSchema` without saying what is then allowed.
    #[error(
        "tool `{tool}` sets allowNoSchema without a noSchemaMode: add `read-only`, \
         `human-approval` or `full`"
    )]
    NoSchemaModeMissing {
        /// The tool.
        tool: String,
    },
    /// A schema and the opt-out of one.
    #[error("tool `{tool}` has a parameter schema and also opts out of one: remove either")]
    NoSchemaConflict {
        /// The tool.
        tool: String,
    },
    /// The description is too long.
    #[error("the description of tool `{tool}` has {chars} characters, more than 4096: shorten it")]
    DescriptionTooLong {
        /// The tool.
        tool: String,
        /// Its length.
        chars: usize,
    },
    /// The brief is too long.
    #[error("the brief has {chars} characters, more than 120: shorten it")]
    BriefTooLong {
        /// Its length.
        chars: usize,
    },
    /// The brief has several lines.
    #[error("the brief has more than one line: a brief is one line")]
    BriefNotOneLine,
    /// A timeout of nothing.
    #[error("timeout_ms is 0: leave it out for the default, or give at least 1")]
    ZeroTimeout,
    /// A key that nobody knows, in JSON input.
    #[error("unknown key `{key}` in {place}: free metadata goes into `annotations` under `x-…`")]
    UnknownKey {
        /// Where it stands.
        place: &'static str,
        /// The key.
        key: String,
    },
    /// JSON input that is no definition.
    #[error("this is no tool definition: {reason}")]
    Malformed {
        /// What is wrong.
        reason: String,
    },
}

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
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Fingerprint(Box<str>);

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
    name: ToolName,
    description: Option<String>,
    brief: String,
    parameters: Result<Value, NoSchemaMode>,
    output_schema: Option<Value>,
    kind: ToolKind,
    strict: Option<bool>,
    annotations: Annotations,
    fingerprint: Fingerprint,
}

impl ToolDefinition {
    /// Starts a definition.
    pub fn builder(name: impl Into<String>) -> ToolDefinitionBuilder {
        ToolDefinitionBuilder {
            name: name.into(),
            description: None,
            parameters: None,
            no_schema: None,
            output_schema: None,
            kind: ToolKind::default(),
            strict: None,
            annotations: Annotations::default(),
        }
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
        from_json(json)?.build()
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

/// Collects the parts of a [`ToolDefinition`].
#[derive(Debug, Clone)]
#[must_use = "a definition exists only after `build`"]
pub struct ToolDefinitionBuilder {
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
    no_schema: Option<NoSchemaMode>,
    output_schema: Option<Value>,
    kind: ToolKind,
    strict: Option<bool>,
    annotations: Annotations,
}

impl ToolDefinitionBuilder {
    /// The full description for the model, kept unchanged.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// One line for lists, at most 120 characters.
    pub fn brief(mut self, text: impl Into<String>) -> Self {
        self.annotations.brief = Some(text.into());
        self
    }

    /// The parameter schema: JSON Schema 2020-12 with an object at its root.
    pub fn parameters(mut self, schema: Value) -> Self {
        self.parameters = Some(schema);
        self
    }

    /// Opts out of a parameter schema. Calls are then never validated, and gated as `mode` says.
    pub fn no_schema(mut self, mode: NoSchemaMode) -> Self {
        self.no_schema = Some(mode);
        self
    }

    /// The schema of results.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// Who executes its calls; [`ToolKind::Function`] if nothing is said.
    pub fn kind(mut self, kind: ToolKind) -> Self {
        self.kind = kind;
        self
    }

    /// Whether providers that know it shall follow the schema strictly.
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = Some(strict);
        self
    }

    /// All annotations at once.
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.annotations = annotations;
        self
    }

    /// Words to filter and search by, added to those already there.
    pub fn tags<S: Into<String>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.annotations
            .tags
            .extend(tags.into_iter().map(Into::into));
        self
    }

    /// The tool changes nothing.
    pub fn read_only(mut self) -> Self {
        self.annotations.read_only = true;
        self
    }

    /// The tool may destroy something.
    pub fn destructive(mut self) -> Self {
        self.annotations.destructive = true;
        self
    }

    /// Calling it twice does no more than calling it once.
    pub fn idempotent(mut self) -> Self {
        self.annotations.idempotent = true;
        self
    }

    /// It reaches out of this system.
    pub fn open_world(mut self) -> Self {
        self.annotations.open_world = true;
        self
    }

    /// A call that shows how the tool is used, and what comes back.
    pub fn example(mut self, input: Value, output: Option<Value>) -> Self {
        self.annotations.examples.push(Example { input, output });
        self
    }

    /// A tool whose results this one needs.
    pub fn depends_on(mut self, tool: ToolName) -> Self {
        self.annotations.depends_on.push(tool);
        self
    }

    /// Freezes the definition.
    pub fn build(self) -> Result<Arc<ToolDefinition>, DefinitionError> {
        let name = ToolName::new(&self.name)?;
        let tool = name.as_str();
        let parameters = match (self.parameters, self.no_schema) {
            (Some(schema), None) => {
                schema::check_parameters(tool, &schema)?;
                Ok(schema)
            }
            (None, Some(mode)) => Err(mode),
            (None, None) => return Err(DefinitionError::MissingSchema { tool: tool.into() }),
            (Some(_), Some(_)) => {
                return Err(DefinitionError::NoSchemaConflict { tool: tool.into() });
            }
        };
        if let Some(schema) = &self.output_schema {
            schema::check(tool, schema)?;
        }
        check_description(tool, self.description.as_deref())?;
        self.annotations.check()?;
        let brief = match &self.annotations.brief {
            Some(brief) => brief.clone(),
            None => brief_of(self.description.as_deref().unwrap_or_default()),
        };
        let mut definition = ToolDefinition {
            name,
            description: self.description,
            brief,
            parameters,
            output_schema: self.output_schema,
            kind: self.kind,
            strict: self.strict,
            annotations: self.annotations,
            fingerprint: Fingerprint("".into()),
        };
        definition.fingerprint = fingerprint(&definition.to_json());
        Ok(Arc::new(definition))
    }
}

fn check_description(tool: &str, description: Option<&str>) -> Result<(), DefinitionError> {
    let chars = description.unwrap_or_default().chars().count();
    if chars > MAX_DESCRIPTION_CHARS {
        return Err(DefinitionError::DescriptionTooLong {
            tool: tool.into(),
            chars,
        });
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DefinitionJson {
    r#type: Option<String>,
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
    output_schema: Option<Value>,
    strict: Option<bool>,
    #[serde(default)]
    allow_no_schema: bool,
    no_schema_mode: Option<NoSchemaMode>,
    #[serde(default)]
    annotations: Annotations,
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

fn from_json(json: Value) -> Result<ToolDefinitionBuilder, DefinitionError> {
    let malformed = |reason: String| DefinitionError::Malformed { reason };
    if schema::value_depth_exceeds(&json, 2 * 128) {
        return Err(malformed("it is nested too deeply".into()));
    }
    let json: DefinitionJson =
        serde_path_to_error::deserialize(json).map_err(|error| malformed(error.to_string()))?;
    if let Some(key) = json.unknown.keys().next() {
        return Err(DefinitionError::UnknownKey {
            place: "the definition",
            key: key.clone(),
        });
    }
    if json
        .r#type
        .as_deref()
        .is_some_and(|kind| kind != "function")
    {
        return Err(malformed("`type` must be `function`".into()));
    }
    let tool = json.name.clone();
    let no_schema = match (json.allow_no_schema, json.no_schema_mode) {
        (true, None) => return Err(DefinitionError::NoSchemaModeMissing { tool }),
        (true, mode) => mode,
        (false, None) => None,
        (false, Some(_)) => {
            return Err(malformed(format!(
                "tool `{tool}` has a noSchemaMode without `\"allowNoSchema\": true`"
            )));
        }
    };
    let parameters = json.parameters.map(|schema| {
        schema::expand_shorthand(&schema).map_or(schema, |expanded| {
            tracing::warn!(
                tool,
                "`parameters` lists properties directly; read as an object schema"
            );
            expanded
        })
    });
    Ok(ToolDefinitionBuilder {
        name: json.name,
        description: json.description,
        parameters,
        no_schema,
        output_schema: json.output_schema,
        kind: ToolKind::Function,
        strict: json.strict,
        annotations: json.annotations,
    })
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

fn fingerprint(json: &Value) -> Fingerprint {
    Fingerprint(hex(&Sha256::digest(canonical_json(json).as_bytes())).into())
}

//! How a definition comes to be.

use std::sync::Arc;

use serde_json::Value;

use crate::annotations::{Annotations, Defer, Example};
use crate::definition::{Fingerprint, NoSchemaMode, ToolDefinition, fingerprint};
use crate::definition_error::DefinitionError;
use crate::kind::ToolKind;
use crate::name::ToolName;
use crate::prose::brief_of;
use crate::schema;

/// The longest description, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 4096;

/// Collects the parts of a [`ToolDefinition`].
#[derive(Debug, Clone)]
#[must_use = "a definition exists only after `build`"]
pub struct ToolDefinitionBuilder {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) parameters: Option<Value>,
    pub(crate) no_schema: Option<NoSchemaMode>,
    pub(crate) output_schema: Option<Value>,
    pub(crate) kind: ToolKind,
    pub(crate) strict: Option<bool>,
    pub(crate) annotations: Annotations,
    pub(crate) has_foreign_text: bool,
}

impl ToolDefinitionBuilder {
    pub(crate) fn new(name: String) -> Self {
        Self {
            name,
            description: None,
            parameters: None,
            no_schema: None,
            output_schema: None,
            kind: ToolKind::default(),
            strict: None,
            annotations: Annotations::default(),
            has_foreign_text: false,
        }
    }

    /// The full description for the model, kept unchanged.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// The description of a tool that a client declares for itself: of any length, because it is
    /// neither an author's to shorten nor ours to cut.
    pub fn foreign_description(mut self, text: impl Into<String>) -> Self {
        self.has_foreign_text = true;
        self.description(text)
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

    /// Its result changes by itself, so equal calls in a row are meant.
    pub fn polling(mut self) -> Self {
        self.annotations.polling = true;
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

    /// Whether it is held back until somebody searches for it.
    pub fn defer(mut self, defer: Defer) -> Self {
        self.annotations.defer = defer;
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
        if !self.has_foreign_text {
            check_description(tool, self.description.as_deref())?;
        }
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

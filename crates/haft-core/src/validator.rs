//! The validator seam: another JSON Schema library can be plugged in without touching tools.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::provenance::InvalidField;

/// Compiles schemas. One per catalogue.
pub trait ValidatorFactory: Send + Sync + 'static {
    /// The name that provenance records.
    fn name(&self) -> &str;

    /// The version that provenance records.
    fn version(&self) -> Option<&str> {
        None
    }

    /// Compiles one schema. Must not touch network or files.
    fn compile(&self, schema: &Value) -> Result<Arc<dyn Validator>, SchemaError>;
}

/// One compiled schema.
pub trait Validator: Send + Sync + 'static {
    /// The name that provenance records if it was attached to one tool by hand.
    fn name(&self) -> Option<&str> {
        None
    }

    /// The version that provenance records beside that name.
    fn version(&self) -> Option<&str> {
        None
    }

    /// Whether `arguments` fit. The fast path: no errors are collected.
    fn is_valid(&self, arguments: &Value) -> bool {
        self.validate(arguments).is_empty()
    }

    /// All errors (at most 32 are of use); none means valid.
    fn validate(&self, arguments: &Value) -> Vec<ValidationError>;
}

impl fmt::Debug for dyn Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Validator({})", self.name().unwrap_or("unnamed"))
    }
}

/// A schema that does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema does not compile: {reason}")]
pub struct SchemaError {
    /// What is wrong, and where.
    pub reason: String,
}

/// One thing that is wrong with arguments.
///
/// ```
/// use haft_core::ValidationError;
/// let error = ValidationError::new("/days", "minimum", "'days' must be at least 1");
/// assert_eq!(error.sorted_by, "/days");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValidationError {
    /// For the model: which field, what was expected.
    pub message: String,
    /// For machines: which value, which keyword.
    pub detail: InvalidField,
    /// The field that errors are sorted by: for a missing or unexpected member its own name.
    pub sorted_by: String,
}

impl ValidationError {
    /// The value at a JSON pointer fails a keyword; `message` says so to the model.
    pub fn new(
        path: impl Into<String>,
        keyword: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let path = path.into();
        Self {
            message: message.into(),
            sorted_by: path.clone(),
            detail: InvalidField {
                path,
                keyword: keyword.into(),
                expected: None,
                actual: None,
            },
        }
    }
}

//! The validator seam: another JSON Schema library can be plugged in without touching tools.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// The name that provenance records, where it differs from the factory's.
    fn name(&self) -> Option<&str> {
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidationError {
    /// For the model: which field, what was expected.
    pub message: String,
    /// JSON pointer of the value concerned.
    pub path: String,
    /// The schema keyword that failed.
    pub keyword: String,
    /// What the keyword asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What was found, in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
    /// The member that errors are sorted by: for a missing or unexpected one its own name.
    #[serde(skip)]
    pub field: String,
}

//! The bundled validator: JSON Schema by the `jsonschema` crate, without any resolver.

use std::sync::Arc;

use haft_core::{SchemaError, ValidationError, Validator, ValidatorFactory};
use jsonschema::PatternOptions;
use serde_json::Value;

use crate::caught::caught;
use crate::complexity::check_in_place;
use crate::explain::explain;

/// How often a regular expression may backtrack before it counts as not matching.
const BACKTRACK_LIMIT: usize = 50_000;

/// The most memory that one compiled regular expression may take.
const PATTERN_BYTES: usize = 1024 * 1024;

/// Compiles schemas with the `jsonschema` crate: draft 2020-12 unless `$schema` says otherwise,
/// `format` as an annotation, references never fetched.
///
/// ```
/// use haft_core::ValidatorFactory;
/// use haft_hydrate::JsonSchemaFactory;
///
/// let validator = JsonSchemaFactory.compile(&serde_json::json!({"type": "integer"}))?;
/// assert!(validator.is_valid(&serde_json::json!(5.0)));
/// assert!(!validator.is_valid(&serde_json::json!("5")));
/// # Ok::<(), haft_core::SchemaError>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct JsonSchemaFactory;

impl ValidatorFactory for JsonSchemaFactory {
    fn name(&self) -> &'static str {
        "haft-jsonschema"
    }

    fn version(&self) -> Option<&str> {
        Some(env!("CARGO_PKG_VERSION"))
    }

    fn compile(&self, schema: &Value) -> Result<Arc<dyn Validator>, SchemaError> {
        check_in_place(schema)?;
        let options = jsonschema::options()
            .offline()
            .should_validate_formats(false)
            .with_pattern_options(
                PatternOptions::fancy_regex()
                    .backtrack_limit(BACKTRACK_LIMIT)
                    .size_limit(PATTERN_BYTES)
                    .dfa_size_limit(PATTERN_BYTES),
            );
        // A schema is foreign input: what makes the library panic must not take the process along.
        let validator = caught(|| options.build(schema))
            .map_err(|panic| SchemaError {
                reason: format!("the validator cannot digest it: {panic}"),
            })?
            .map_err(|error| SchemaError {
                reason: describe(&error),
            })?;
        Ok(Arc::new(JsonSchemaValidator(validator)))
    }
}

fn describe(error: &jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path().as_str();
    if place.is_empty() {
        error.masked().to_string()
    } else {
        format!("at `{place}`: {}", error.masked())
    }
}

struct JsonSchemaValidator(jsonschema::Validator);

impl Validator for JsonSchemaValidator {
    fn is_valid(&self, arguments: &Value) -> bool {
        self.0.is_valid(arguments)
    }

    fn validate(&self, arguments: &Value) -> Vec<ValidationError> {
        if self.0.is_valid(arguments) {
            return Vec::new();
        }
        explain(self.0.iter_errors(arguments))
    }
}

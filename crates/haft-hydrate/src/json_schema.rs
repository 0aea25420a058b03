//! The bundled validator: JSON Schema by the `jsonschema` crate, without any resolver.

use std::sync::Arc;

use haft_core::{SchemaError, ValidationError, Validator, ValidatorFactory, caught};
use jsonschema::PatternOptions;
use serde_json::Value;

use crate::cost::{can_explode, count};
use crate::explain::explain;
use crate::in_place::measure;

/// How often a regular expression may backtrack before it counts as not matching.
const BACKTRACK_LIMIT: usize = 50_000;

/// The most memory that one compiled regular expression may take.
const PATTERN_BYTES: usize = 1024 * 1024;

/// What a verdict on one call may cost, in visits of a schema: some ten milliseconds.
const MAX_VERDICT_COST: u64 = 1_000_000;

/// What the list of its errors may cost.
const MAX_EXPLANATION_COST: u64 = 50_000;

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
        let in_place = measure(schema)?;
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
        Ok(Arc::new(JsonSchemaValidator {
            validator,
            counted: can_explode(schema, in_place),
            schema: schema.clone(),
        }))
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

struct JsonSchemaValidator {
    validator: jsonschema::Validator,
    schema: Value,
    /// Whether a call must be counted before it is validated.
    counted: bool,
}

impl JsonSchemaValidator {
    fn is_too_costly(&self, arguments: &Value) -> bool {
        self.counted
            && count(&self.schema, arguments).is_none_or(|cost| cost.verdict > MAX_VERDICT_COST)
    }
}

impl Validator for JsonSchemaValidator {
    fn is_valid(&self, arguments: &Value) -> bool {
        !self.is_too_costly(arguments) && self.validator.is_valid(arguments)
    }

    fn validate(&self, arguments: &Value) -> Vec<ValidationError> {
        if self.is_too_costly(arguments) {
            return vec![ValidationError::new(
                "",
                "schema",
                "the arguments are too large or too deeply nested to be checked",
            )];
        }
        if self.validator.is_valid(arguments) {
            return Vec::new();
        }
        let explainable = count(&self.schema, arguments)
            .is_some_and(|cost| cost.explanation <= MAX_EXPLANATION_COST);
        if explainable {
            explain(self.validator.iter_errors(arguments))
        } else {
            vec![ValidationError::new(
                "",
                "schema",
                "the arguments do not fit the schema",
            )]
        }
    }
}

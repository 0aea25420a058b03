//! What the schemas of one request may cost to compile, all together.
//!
//! Each schema is bounded by itself, but a request may bring thousands of them, and a regular
//! expression of a few bytes takes milliseconds. Counted and not timed, so that a request is refused
//! always or never.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use haft_core::{SchemaError, Validator, ValidatorFactory};
use haft_hydrate::JsonSchemaFactory;
use serde_json::Value;

/// What one request may cost: some seconds at worst.
const BUDGET: u64 = 1_000_000;

/// What each schema costs, however small it is.
const PER_SCHEMA: u64 = 20;

/// What each regular expression costs.
const PER_PATTERN: u64 = 500;

/// The bundled validator, for as many schemas as one request may bring.
#[derive(Debug)]
pub(crate) struct BoundedSchemas {
    left: AtomicU64,
}

impl Default for BoundedSchemas {
    fn default() -> Self {
        Self {
            left: AtomicU64::new(BUDGET),
        }
    }
}

impl ValidatorFactory for BoundedSchemas {
    fn name(&self) -> &str {
        JsonSchemaFactory.name()
    }

    fn version(&self) -> Option<&str> {
        JsonSchemaFactory.version()
    }

    fn compile(&self, schema: &Value) -> Result<Arc<dyn Validator>, SchemaError> {
        let cost = PER_SCHEMA + cost_of(schema);
        let paid = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(cost)
            });
        if paid.is_err() {
            return Err(SchemaError {
                reason:
                    "with it the schemas of this request are too many, or have too many regular \
                         expressions: send fewer tools at once"
                        .to_owned(),
            });
        }
        JsonSchemaFactory.compile(schema)
    }
}

/// One for every value, more for what is compiled. The parser of bodies bounds the depth.
fn cost_of(value: &Value) -> u64 {
    match value {
        Value::Array(values) => 1 + values.iter().map(cost_of).sum::<u64>(),
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| match (&**key, value) {
                ("pattern", Value::String(_)) => PER_PATTERN,
                ("patternProperties", Value::Object(patterns)) => {
                    PER_PATTERN * patterns.len() as u64 + cost_of(value)
                }
                _ => cost_of(value),
            });
            1 + members.sum::<u64>()
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn many_small_schemas_fit_and_a_flood_does_not() {
        let schemas = BoundedSchemas::default();
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        let compiled = (0..1_000).map(|_| schemas.compile(&schema).is_ok());
        assert_eq!(compiled.filter(|is_ok| *is_ok).count(), 1_000);
        let cost = 1_000 * (PER_SCHEMA + cost_of(&schema));
        assert!(
            10 * cost < BUDGET,
            "ten thousand tools are nothing unusual: {cost}"
        );
    }

    #[test]
    fn regular_expressions_are_bounded_over_all_schemas_of_a_request() {
        let schemas = BoundedSchemas::default();
        let patterns =
            (0..500).map(|at| (format!("p{at}"), json!({"pattern": format!("^a{at}$")})));
        let schema =
            json!({"type": "object", "properties": patterns.collect::<serde_json::Map<_, _>>()});
        let compiled: Vec<bool> = (0..5).map(|_| schemas.compile(&schema).is_ok()).collect();
        assert_eq!(compiled, [true, true, true, false, false]);
        let others = json!({"patternProperties": {"^x-": {}, "^y-": {}}});
        assert_eq!(cost_of(&others), 2 * PER_PATTERN + 4);
        // What is called so is not one.
        let property = json!({"properties": {"pattern": {"type": "string"}}});
        assert!(cost_of(&property) < PER_PATTERN);
    }
}

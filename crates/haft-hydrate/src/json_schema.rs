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
        compile(schema, options().should_validate_formats(false))
    }
}

impl JsonSchemaFactory {
    /// The same, with these formats checked instead of taken as annotations.
    ///
    /// ```
    /// use haft_core::ValidatorFactory;
    /// use haft_hydrate::JsonSchemaFactory;
    ///
    /// let factory = JsonSchemaFactory.checking_formats(["email"]);
    /// let email = factory.compile(&serde_json::json!({"format": "email"}))?;
    /// assert!(!email.is_valid(&serde_json::json!("no address")));
    /// let date = factory.compile(&serde_json::json!({"format": "date"}))?;
    /// assert!(date.is_valid(&serde_json::json!("no date")));
    /// # Ok::<(), haft_core::SchemaError>(())
    /// ```
    pub fn checking_formats<S: Into<String>>(
        self,
        formats: impl IntoIterator<Item = S>,
    ) -> FormatCheckingFactory {
        FormatCheckingFactory {
            checked: formats.into_iter().map(Into::into).collect(),
        }
    }
}

/// [`JsonSchemaFactory`] with a list of formats that are checked.
#[derive(Debug, Clone, Default)]
pub struct FormatCheckingFactory {
    checked: Vec<String>,
}

/// The formats that the library knows; all of them are checked unless they are switched off.
const KNOWN_FORMATS: [&str; 19] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

impl ValidatorFactory for FormatCheckingFactory {
    fn name(&self) -> &'static str {
        "haft-jsonschema+formats"
    }

    fn version(&self) -> Option<&str> {
        JsonSchemaFactory.version()
    }

    fn compile(&self, schema: &Value) -> Result<Arc<dyn Validator>, SchemaError> {
        let mut options = options().should_validate_formats(true);
        for format in KNOWN_FORMATS {
            if !self.checked.iter().any(|checked| checked == format) {
                options = options.with_format(format, |_: &str| true);
            }
        }
        compile(schema, options)
    }
}

type Options = jsonschema::ValidationOptions<'static>;

fn options() -> Options {
    jsonschema::options().offline().with_pattern_options(
        PatternOptions::fancy_regex()
            .backtrack_limit(BACKTRACK_LIMIT)
            .size_limit(PATTERN_BYTES)
            .dfa_size_limit(PATTERN_BYTES),
    )
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "the options are made for one schema"
)]
fn compile(schema: &Value, options: Options) -> Result<Arc<dyn Validator>, SchemaError> {
    let in_place = measure(schema)?;
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

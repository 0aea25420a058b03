//! The bundled validator: JSON Schema by the `jsonschema` crate, without any resolver.

use std::sync::Arc;

use haft_core::{SchemaError, ValidationError, Validator, ValidatorFactory, caught};
use jsonschema::PatternOptions;
use serde_json::Value;

use crate::cost::{Cost, Patterns, can_explode, count, node_count, text_bytes};
use crate::explain::explain;
use crate::in_place::measure;
use crate::offload::offload;
use crate::pattern::{BACKTRACK_LIMIT, PATTERN_BYTES, TooCostly};

/// What a verdict on one call may cost, in visits of a schema: some ten milliseconds.
const MAX_VERDICT_COST: u64 = 1_000_000;

/// What the list of its errors may cost.
const MAX_EXPLANATION_COST: u64 = 50_000;

/// Patterns that take longer than this to compile, in microseconds, are compiled off the async runtime.
const SLOW_COMPILE: u64 = 2_000;

/// A validation that can visit more pairs of schema and value than this runs off the async runtime.
const QUICK_PAIRS: usize = 50_000;

/// The keyword of a value that costs too much to validate.
pub(crate) const TOO_COSTLY: &str = "cost";

/// What compiling the patterns of a schema costs at worst, in microseconds; an error for patterns that no
/// schema may have.
///
/// ```
/// let plain = serde_json::json!({"type": "string"});
/// assert_eq!(haft_hydrate::pattern_cost(&plain)?, 0);
/// let pattern = serde_json::json!({"pattern": "^[a-z]{1,64}$"});
/// assert!(haft_hydrate::pattern_cost(&pattern)? > 500);
/// # Ok::<(), haft_core::SchemaError>(())
/// ```
pub fn pattern_cost(schema: &Value) -> Result<u64, SchemaError> {
    Ok(Patterns::of(schema)?.compile_cost())
}

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
        compile(schema, |options| options.should_validate_formats(false))
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
        compile(schema, |options| {
            let mut options = options.should_validate_formats(true);
            for format in KNOWN_FORMATS {
                if !self.checked.iter().any(|checked| checked == format) {
                    options = options.with_format(format, |_: &str| true);
                }
            }
            options
        })
    }
}

type Options = jsonschema::ValidationOptions<'static>;

/// Options with the engine that the patterns allow: without backtracking where none needs it.
fn options(patterns: &Patterns) -> Options {
    let options = jsonschema::options().offline();
    if patterns.need_backtracking() {
        options.with_pattern_options(
            PatternOptions::fancy_regex()
                .backtrack_limit(BACKTRACK_LIMIT)
                .size_limit(PATTERN_BYTES)
                .dfa_size_limit(PATTERN_BYTES),
        )
    } else {
        options.with_pattern_options(
            PatternOptions::regex()
                .size_limit(PATTERN_BYTES)
                .dfa_size_limit(PATTERN_BYTES),
        )
    }
}

fn compile(
    schema: &Value,
    configure: impl FnOnce(Options) -> Options,
) -> Result<Arc<dyn Validator>, SchemaError> {
    let in_place = measure(schema)?;
    let patterns = Patterns::of(schema)?;
    let options = configure(options(&patterns));
    // A schema is foreign input: what makes the library panic must not take the process along.
    let compile = || caught(|| options.build(schema));
    let compiled = if patterns.compile_cost() > SLOW_COMPILE {
        offload(compile)
    } else {
        compile()
    };
    let validator = compiled
        .map_err(|panic| SchemaError {
            reason: format!("the validator cannot digest it: {panic}"),
        })?
        .map_err(|error| SchemaError {
            reason: describe(&error),
        })?;
    Ok(Arc::new(JsonSchemaValidator {
        validator,
        can_explode: can_explode(schema, in_place),
        patterns,
        schema_nodes: node_count(schema),
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
    patterns: Patterns,
    /// Whether values must be counted before they are validated, whatever they are.
    can_explode: bool,
    schema_nodes: usize,
}

impl JsonSchemaValidator {
    /// Runs a validation of `arguments`, off the async runtime where it may be slow.
    fn run<T>(&self, arguments: &Value, validation: impl FnOnce() -> T) -> T {
        let may_be_slow = self.patterns.can_be_slow(text_bytes(arguments))
            || (self.can_explode
                && self.schema_nodes.saturating_mul(node_count(arguments)) > QUICK_PAIRS);
        if may_be_slow {
            offload(validation)
        } else {
            validation()
        }
    }

    /// Refuses a value whose validation costs too much.
    fn check_cost(&self, arguments: &Value) -> Result<(), TooCostly> {
        if !self.can_explode && !self.patterns.can_be_slow(text_bytes(arguments)) {
            return Ok(());
        }
        let cost = self.count(arguments)?;
        if cost.verdict > MAX_VERDICT_COST {
            return Err(TooCostly::Size);
        }
        Ok(())
    }

    fn count(&self, arguments: &Value) -> Result<Cost, TooCostly> {
        count(&self.schema, &self.patterns, arguments)
    }
}

impl Validator for JsonSchemaValidator {
    fn is_valid(&self, arguments: &Value) -> bool {
        self.run(arguments, || {
            self.check_cost(arguments).is_ok() && self.validator.is_valid(arguments)
        })
    }

    fn validate(&self, arguments: &Value) -> Vec<ValidationError> {
        self.run(arguments, || self.errors(arguments))
    }
}

impl JsonSchemaValidator {
    fn errors(&self, arguments: &Value) -> Vec<ValidationError> {
        if let Err(reason) = self.check_cost(arguments) {
            return vec![ValidationError::new(
                "",
                TOO_COSTLY,
                match reason {
                    TooCostly::Size => {
                        "the arguments are too large or too deeply nested to be checked"
                    }
                    TooCostly::Backtracking => {
                        "the arguments cannot be checked: a pattern of the schema with look-around \
                         or back-references takes too many steps on them"
                    }
                },
            )];
        }
        if self.validator.is_valid(arguments) {
            return Vec::new();
        }
        let explainable = self
            .count(arguments)
            .is_ok_and(|cost| cost.explanation <= MAX_EXPLANATION_COST && cost.can_match_again());
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

//! parse → validate, with at most one repair in between: the part of hydration that needs no tool.

use std::time::{Duration, Instant};

use haft_core::{
    ErrorCode, FinishReason, HydrationError, RawArguments, RepairRecord, Stage, ValidationError,
    Validator, ValidatorFactory, caught,
};
use serde_json::Value;

use crate::parse::parse_arguments;
use crate::repairer::{RepairRequest, Repairer};
use crate::text::Root;

/// What arguments are held against.
#[derive(Clone, Copy)]
pub struct Contract<'a> {
    /// The authoritative schema.
    pub schema: &'a Value,
    /// The schema, compiled.
    pub validator: &'a dyn Validator,
    /// For checking parts of the schema during a repair.
    pub factory: &'a dyn ValidatorFactory,
    /// The tool's name.
    pub tool: &'a str,
    /// What the root must be: an object, for a tool.
    pub root: Root,
}

/// What became of arguments.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CheckedArguments {
    /// After parsing as written.
    pub parsed: Option<Value>,
    /// After validation; the outcome of the repair where there was one.
    pub validated: Option<Value>,
    /// What went wrong; empty exactly if `validated` is there.
    pub errors: Vec<HydrationError>,
    /// The repair, if one was attempted.
    pub repair: Option<RepairRecord>,
    /// How long validation took.
    pub validation: Duration,
}

impl CheckedArguments {
    /// Whether `validated` is the outcome of a repair.
    pub fn is_repaired(&self) -> bool {
        self.validated.is_some() && self.repair.is_some()
    }
}

/// Checks arguments against a contract: parse, validate and, if `repairer` is given and one of the
/// two failed, one audited attempt to repair them. Never panics, never gives up early.
///
/// ```
/// use haft_core::{FinishReason, ValidatorFactory};
/// use haft_hydrate::{AuditedRepairer, Contract, JsonSchemaFactory, Root, check_arguments};
///
/// let schema = serde_json::json!({"type": "object", "properties": {"n": {"type": "integer"}}});
/// let contract = Contract {
///     schema: &schema,
///     validator: &*JsonSchemaFactory.compile(&schema)?,
///     factory: &JsonSchemaFactory,
///     tool: "count",
///     root: Root::Object,
/// };
/// let broken = r#"{"n": 3,}"#.into();
/// let plain = check_arguments(&broken, FinishReason::Normal, &contract, None);
/// assert!(plain.validated.is_none());
/// let repaired = check_arguments(&broken, FinishReason::Normal, &contract, Some(&AuditedRepairer));
/// assert_eq!(repaired.validated, Some(serde_json::json!({"n": 3})));
/// assert!(repaired.is_repaired());
/// # Ok::<(), haft_core::SchemaError>(())
/// ```
pub fn check_arguments(
    raw: &RawArguments,
    finish: FinishReason,
    contract: &Contract<'_>,
    repairer: Option<&dyn Repairer>,
) -> CheckedArguments {
    let mut checked = CheckedArguments::default();
    let attempt = match parse_arguments(raw, contract.root) {
        Err(failure) => {
            checked.errors.push(failure.to_error());
            Attempt {
                stage: Stage::Parse,
                code: failure.code,
                text: failure.text.or_else(|| text_of(raw)),
                value: failure.value,
            }
        }
        Ok(value) => {
            let errors = validate(&value, contract, &mut checked.validation);
            checked.parsed = Some(value.clone());
            if errors.is_empty() {
                checked.validated = Some(value);
                return checked;
            }
            let code = errors[0].detail.clone();
            checked.errors = errors;
            Attempt {
                stage: Stage::Validate,
                code,
                text: text_of(raw),
                value: Some(value),
            }
        }
    };
    if let Some(repairer) = repairer {
        attempt.repair(finish, contract, repairer, &mut checked);
    }
    checked
}

/// A failed check, about to be repaired.
struct Attempt {
    stage: Stage,
    code: ErrorCode,
    text: Option<String>,
    value: Option<Value>,
}

impl Attempt {
    fn repair(
        self,
        finish: FinishReason,
        contract: &Contract<'_>,
        repairer: &dyn Repairer,
        checked: &mut CheckedArguments,
    ) {
        let request = RepairRequest {
            stage: self.stage,
            code: &self.code,
            text: self.text.as_deref(),
            value: self.value.as_ref(),
            schema: contract.schema,
            validator: contract.validator,
            factory: contract.factory,
            tool: contract.tool,
            finish,
            root: contract.root,
        };
        let attempt = caught(|| repairer.repair(&request));
        let mut record = RepairRecord {
            by: repairer.name().to_owned(),
            stage: self.stage,
            before: match (&self.text, &self.value) {
                (Some(text), _) => text.clone(),
                (None, Some(value)) => value.to_string(),
                (None, None) => String::new(),
            },
            after: None,
            ok: false,
            refusal: None,
            events: Vec::new(),
        };
        match attempt {
            Ok(Ok(result)) => {
                let errors = validate(&result.value, contract, &mut checked.validation);
                let fits = contract.root == Root::Any || result.value.is_object();
                record.ok = errors.is_empty() && fits;
                record.after = Some(result.text);
                record.events = result.events;
                if record.ok {
                    checked.errors.clear();
                    checked.validated = Some(result.value);
                } else {
                    record.refusal = Some(errors.first().map_or_else(
                        || "the result is no object".to_owned(),
                        |error| error.message.clone(),
                    ));
                }
            }
            Ok(Err(refusal)) => {
                record.refusal = Some(refusal.reason);
                record.events = refusal.events;
            }
            Err(panic) => record.refusal = Some(format!("the repairer panicked: {panic}")),
        }
        if !record.ok {
            checked.errors.push(HydrationError {
                stage: self.stage,
                message: "repair failed".into(),
                detail: ErrorCode::RepairFailed,
            });
        }
        checked.repair = Some(record);
    }
}

fn validate(value: &Value, contract: &Contract<'_>, took: &mut Duration) -> Vec<HydrationError> {
    let started = Instant::now();
    let verdict = caught(|| contract.validator.validate(value));
    *took += started.elapsed();
    match verdict {
        Ok(errors) => sorted(errors).into_iter().map(worded).collect(),
        Err(panic) => vec![HydrationError {
            stage: Stage::Validate,
            message: format!("the validator panicked: {panic}"),
            detail: ErrorCode::BrokenSchema,
        }],
    }
}

/// At most so many errors are kept of one call.
pub(crate) const MAX_ERRORS: usize = 32;

/// Errors by field, each once, whichever validator found them: `list[2]` before `list[10]`.
fn sorted(mut errors: Vec<ValidationError>) -> Vec<ValidationError> {
    errors.truncate(MAX_ERRORS);
    errors.sort_by_cached_key(|error| parts(&error.sorted_by));
    errors.dedup();
    errors
}

/// A field as words and numbers, so that numbers compare as such.
fn parts(field: &str) -> Vec<(String, Option<u64>)> {
    field
        .split(['.', '/', '[', ']'])
        .filter(|part| !part.is_empty())
        .map(|part| match part.parse() {
            Ok(number) => (String::new(), Some(number)),
            Err(_) => (part.to_owned(), None),
        })
        .collect()
}

fn worded(error: ValidationError) -> HydrationError {
    HydrationError {
        stage: Stage::Validate,
        message: error.message,
        detail: ErrorCode::Invalid(Box::new(error.detail)),
    }
}

fn text_of(raw: &RawArguments) -> Option<String> {
    match raw {
        RawArguments::Text(text) | RawArguments::Json(Value::String(text)) => Some(text.clone()),
        RawArguments::Json(_) => None,
    }
}

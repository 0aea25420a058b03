//! The repair seam: one audited attempt, by rules that can be swapped.

use std::fmt;

use haft_core::{ErrorCode, FinishReason, RepairEvent, Stage, Validator, ValidatorFactory};
use serde_json::Value;

use crate::coerce::coerce;
use crate::json_schema::TOO_COSTLY;
use crate::parse::parse_strict;
use crate::text::{Root, TextPolicy, edits_until_refused, repair_text};

/// What a repairer gets to see.
pub struct RepairRequest<'a> {
    /// After which stage had failed.
    pub stage: Stage,
    /// Why it had failed.
    pub code: &'a ErrorCode,
    /// The text that did not parse.
    pub text: Option<&'a str>,
    /// The value that parsed and is not valid.
    pub value: Option<&'a Value>,
    /// The authoritative schema.
    pub schema: &'a Value,
    /// The schema, compiled.
    pub validator: &'a dyn Validator,
    /// For checking parts of the schema.
    pub factory: &'a dyn ValidatorFactory,
    /// The tool's name.
    pub tool: &'a str,
    /// Why the model stopped writing.
    pub finish: FinishReason,
    /// What the root must be.
    pub root: Root,
}

/// What came of a repair. It is validated again before anyone trusts it with anything.
#[derive(Debug, Clone, PartialEq)]
pub struct Repaired {
    /// The value.
    pub value: Value,
    /// The text that it was read from, for the record.
    pub text: String,
    /// Every edit.
    pub events: Vec<RepairEvent>,
}

/// Why a repairer gave up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairRefused {
    /// In words.
    pub reason: String,
    /// What it had done until then.
    pub events: Vec<RepairEvent>,
}

/// Repairs arguments, at most once per call. Every edit must be reported.
pub trait Repairer: Send + Sync + 'static {
    /// The name that provenance records.
    fn name(&self) -> &str;

    /// One attempt.
    fn repair(&self, request: &RepairRequest<'_>) -> Result<Repaired, RepairRefused>;
}

impl fmt::Debug for dyn Repairer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Repairer({})", self.name())
    }
}

/// The bundled repairer: lossless text repairs, and coercions that the schema fixes to one reading.
#[derive(Debug, Clone, Copy, Default)]
pub struct AuditedRepairer;

impl Repairer for AuditedRepairer {
    fn name(&self) -> &'static str {
        "haft-audited"
    }

    fn repair(&self, request: &RepairRequest<'_>) -> Result<Repaired, RepairRefused> {
        refuse_what_is_never_repaired(request.code)?;
        let (value, text, mut events) = match (request.value, request.text) {
            (Some(value), _) => (value.clone(), None, Vec::new()),
            (None, Some(text)) => {
                let (value, text, events) = read(text, request)?;
                // Coercion is for what validation refuses, and for nothing else.
                if request.validator.is_valid(&value) {
                    return Ok(Repaired {
                        value,
                        text,
                        events,
                    });
                }
                (value, Some(text), events)
            }
            (None, None) => return Err(refused("there is nothing to repair")),
        };
        let Some((coerced, coercions)) =
            coerce(&value, request.schema, request.tool, request.factory)
        else {
            return Err(RepairRefused {
                events,
                ..refused("it would take more than 16 coercions")
            });
        };
        let text = match text {
            Some(text) if coercions.is_empty() => text,
            _ => coerced.to_string(),
        };
        events.extend(coercions);
        if events.is_empty() {
            return Err(refused("no admissible repair applies"));
        }
        Ok(Repaired {
            value: coerced,
            text,
            events,
        })
    }
}

/// Repairs the text; where a whole document was encoded as a string, decodes that too.
fn read(
    text: &str,
    request: &RepairRequest<'_>,
) -> Result<(Value, String, Vec<RepairEvent>), RepairRefused> {
    let (finish, policy, root) = (request.finish, TextPolicy::Arguments, request.root);
    let repaired = repair_text(text, finish, policy, root).map_err(|refusal| RepairRefused {
        reason: refusal.to_string(),
        events: edits_until_refused(text, finish, policy, root),
    })?;
    let value = match parse_strict(&repaired.text) {
        Ok(value) => value,
        Err(failure) => {
            return Err(RepairRefused {
                reason: failure.to_error().message,
                events: repaired.events,
            });
        }
    };
    Ok((value, repaired.text, repaired.events))
}

fn refuse_what_is_never_repaired(code: &ErrorCode) -> Result<(), RepairRefused> {
    match code {
        ErrorCode::DuplicateKey { .. }
        | ErrorCode::TooDeep
        | ErrorCode::TooLarge
        | ErrorCode::NumberOutOfRange
        | ErrorCode::BrokenSchema => Err(refused("this is never repaired")),
        // A repair would validate parts of it again and again.
        ErrorCode::Invalid(field) if field.keyword == TOO_COSTLY => {
            Err(refused("it costs too much to validate"))
        }
        _ => Ok(()),
    }
}

fn refused(reason: impl Into<String>) -> RepairRefused {
    RepairRefused {
        reason: reason.into(),
        events: Vec::new(),
    }
}

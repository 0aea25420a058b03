//! What became of a call, and how: the record that every call leaves, good or bad.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::RawArguments;
use crate::definition::{Fingerprint, NoSchemaMode};
use crate::repair::RepairEvent;
use crate::tool::HydratedTool;

/// Where in hydration something went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Text to JSON.
    Parse,
    /// JSON against the schema.
    Validate,
    /// Name to tool, JSON to the tool's own types.
    Instantiate,
}

/// What kind of thing went wrong; the front doors word their messages by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorCode {
    /// Not JSON.
    InvalidJson {
        /// 1-based line.
        line: usize,
        /// 1-based column, in bytes.
        column: usize,
    },
    /// The text ends too early.
    Truncated,
    /// JSON, and no object.
    NotAnObject,
    /// A key occurs twice.
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// Nested deeper than 128.
    TooDeep,
    /// Larger than 1 MiB.
    TooLarge,
    /// A number that cannot be kept without loss.
    NumberOutOfRange,
    /// The schema refuses it.
    Invalid(Box<InvalidField>),
    /// The schema itself cannot be used (found late).
    BrokenSchema,
    /// The one repair did not help.
    RepairFailed,
    /// Nobody offered a tool of that name.
    UnknownTool {
        /// What the model reads.
        text: String,
    },
    /// The tool is offered, and this request does not allow it to be called.
    NotAllowed {
        /// What the model reads.
        text: String,
    },
    /// The schema admits it and the tool's types do not: the author's mistake.
    TypeMismatch {
        /// Where, as serde writes paths.
        path: String,
    },
}

/// Which value the schema refuses, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvalidField {
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
}

/// One thing that went wrong with a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HydrationError {
    /// In which stage.
    pub stage: Stage,
    /// What, in words.
    pub message: String,
    /// What, for machines.
    pub detail: ErrorCode,
}

/// The outcome of hydrating one call: the tool ready to run, or errors, and the record always.
#[derive(Debug)]
pub struct HydrationResult {
    /// The call, ready to run; present exactly on success, until somebody takes it.
    pub tool: Option<Box<dyn HydratedTool>>,
    /// What went wrong; empty exactly on success.
    pub errors: Vec<HydrationError>,
    /// How it came to this.
    pub provenance: Provenance,
}

impl HydrationResult {
    /// Whether the call may go on to the gate.
    pub fn success(&self) -> bool {
        self.errors.is_empty()
    }

    /// How far the arguments are what the model wrote and the schema admits.
    pub fn trust(&self) -> Trust {
        if !self.success() {
            Trust::Rejected
        } else if self.provenance.unvalidated {
            Trust::Unvalidated
        } else if self.provenance.repaired {
            Trust::Repaired
        } else {
            Trust::Validated
        }
    }

    /// The JSON form: the instance is replaced by its tool's name.
    pub fn to_json(&self) -> Value {
        serde_json::json!({
            "tool": self.provenance.tool_name.as_ref().filter(|_| self.success()),
            "success": self.success(),
            "errors": self.errors,
            "provenance": self.provenance,
        })
    }
}

/// How far arguments may be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Validated as written.
    Validated,
    /// Validated after an audited repair: untrusted, to be reviewed.
    Repaired,
    /// Never validated, because the tool has no schema.
    Unvalidated,
    /// Refused: there is nothing to trust.
    Rejected,
}

/// The record of one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// The tool's name as it was sent to this provider.
    pub provider_tool_id: String,
    /// The call's id, unique in the conversation.
    pub call_id: String,
    /// The authoritative name, if the tool is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// The definition that was used, if the tool is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition_fingerprint: Option<Fingerprint>,
    /// Exactly what arrived.
    pub original_raw_args: RawArguments,
    /// After parsing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parsed: Option<Value>,
    /// After validation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validated: Option<Value>,
    /// Who validated; `null` for a tool without schema or a call that came not so far.
    pub validator: Option<ValidatorRecord>,
    /// Whether `validated` is the outcome of a repair: then it is untrusted.
    pub repaired: bool,
    /// The repair, if one was attempted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<RepairRecord>,
    /// Whether the tool has no schema and nothing was validated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unvalidated: bool,
    /// What a tool without schema opted into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_schema_mode: Option<NoSchemaMode>,
    /// Where the call came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<CallSource>,
    /// When, in RFC 3339.
    pub at: String,
}

/// Who validated a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValidatorRecord {
    /// The validator.
    pub name: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When it was compiled.
    pub compiled_at: CompiledAt,
    /// How long validation took, in microseconds.
    pub elapsed_us: u64,
}

/// When a validator was compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompiledAt {
    /// Early: a broken schema is a registration error.
    Registration,
    /// Late: at the first call.
    Hydration,
}

/// One attempted repair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepairRecord {
    /// Which repairer.
    pub by: String,
    /// After which stage had failed.
    pub stage: Stage,
    /// The text that was repaired.
    pub before: String,
    /// The text that came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Whether its result validated.
    pub ok: bool,
    /// Why the repairer gave up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Every single edit, also on failure.
    pub events: Vec<RepairEvent>,
}

/// Where a call came from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallSource {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The provider's id of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The provider's call object as it arrived, at most 64 KiB of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<String>,
    /// The call was recovered from text content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recovered: bool,
}

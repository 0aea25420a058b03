//! How a run went: turns, calls, what was made of arguments, times and tokens. No content: no
//! arguments, no outputs, no texts, not even the words of an error.

use haft_core::{ErrorCode, Trust, Usage};
use haft_engine::CallRecord;
use serde::{Deserialize, Serialize};

/// The story of one response, as it is stored beside it.
///
/// Times are milliseconds since the run's beginning.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunTrace {
    /// Always `response.trace`.
    pub object: String,
    /// The response.
    pub response_id: String,
    /// The request that asked for it.
    pub request_id: String,
    /// The model by the name that requests use.
    pub model: String,
    /// When it began, in seconds since the epoch.
    pub started_at: f64,
    /// How long it took; none while it goes on.
    pub duration_ms: Option<f64>,
    /// `completed`, `incomplete`, `failed`, `cancelled` or `waiting`; none while it goes on.
    pub outcome: Option<String>,
    /// The limit, the fault, or what is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What all requests to the model cost.
    pub usage: Usage,
    /// What happened to the run besides its turns, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// The answers of the model and the calls in them, in order.
    pub turns: Vec<TurnTrace>,
    /// How many calls are left out because there were too many.
    #[serde(skip_serializing_if = "is_zero")]
    pub calls_omitted: u64,
}

/// Something that happened to a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// When.
    pub at_ms: f64,
    /// What.
    #[serde(flatten)]
    pub kind: NoteKind,
}

/// What happened to a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoteKind {
    /// Its context was summed up.
    Compaction {
        /// How long that took.
        duration_ms: f64,
        /// `completed`, `failed` or `cancelled`.
        outcome: String,
        /// What the summary cost.
        usage: Usage,
    },
    /// Its context was cut because the model refused it as too long.
    Truncation,
    /// Another model answered in place of one that failed.
    Failover {
        /// Who failed.
        from: String,
        /// Who was asked then.
        to: String,
        /// What kind of failure it was.
        error: String,
    },
    /// Another process took it up.
    Resumed,
}

/// One answer of the model, and the calls in it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnTrace {
    /// When the model was asked.
    pub start_ms: f64,
    /// When the first piece of the answer came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<f64>,
    /// When the answer was whole, or given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_ms: Option<f64>,
    /// The requests that it took: one, or more where some failed.
    pub attempts: Vec<AttemptTrace>,
    /// Why the model stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// Who answered, as the provider calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Whether the answer was not used because it broke `tool_choice`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub discarded: bool,
    /// The calls in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallTrace>,
}

/// One request to the model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptTrace {
    /// When it was sent.
    pub start_ms: f64,
    /// When it was answered or had failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_ms: Option<f64>,
    /// What kind of failure it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long was waited before the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CallTrace {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// `function` or `custom` where the client runs it, `tool_search` whoever searches, the tool's type
    /// where it runs here, `unknown` where there is none.
    pub kind: String,
    /// When it began to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<f64>,
    /// How long it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// What became of it; none while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// What was made of its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hydration: Option<HydrationTrace>,
    /// What a policy or a person said: `approved`, `denied` or `not approved`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// Whether its tool was deferred, and loaded because this call named it with valid arguments.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub loaded_by_call: bool,
    /// How long its result is, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
}

/// What was made of arguments.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HydrationTrace {
    /// `valid`, `repaired`, `unvalidated` or `refused`.
    pub outcome: String,
    /// What was wrong with them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// What was repaired.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<String>,
}

impl HydrationTrace {
    pub(super) fn of(record: &CallRecord) -> Self {
        let repair = record.provenance.repair.as_ref();
        let edits = repair.into_iter().flat_map(|repair| &repair.events);
        let mut repairs: Vec<String> = Vec::new();
        for edit in edits {
            let kind = serde_json::to_value(edit.kind).ok();
            let kind = kind.as_ref().and_then(serde_json::Value::as_str);
            let kind = kind.unwrap_or("other");
            if !repairs.iter().any(|known| known == kind) {
                repairs.push(kind.to_owned());
            }
        }
        let errors = record.errors.iter().map(|error| code_of(&error.detail));
        Self {
            outcome: trust_word(record).to_owned(),
            errors: errors.collect(),
            repairs,
        }
    }
}

/// How far a call's arguments were trusted, in the words of metrics and traces.
pub(super) fn trust_word(record: &CallRecord) -> &'static str {
    let trust = if !record.errors.is_empty() {
        Trust::Rejected
    } else if record.provenance.unvalidated {
        Trust::Unvalidated
    } else if record.provenance.repaired {
        Trust::Repaired
    } else {
        Trust::Validated
    };
    match trust {
        Trust::Validated => "valid",
        Trust::Repaired => "repaired",
        Trust::Unvalidated => "unvalidated",
        Trust::Rejected => "refused",
    }
}

/// What is wrong in one word, and for what a schema refuses its keyword. The rest would be content.
fn code_of(code: &ErrorCode) -> String {
    let code = match code {
        ErrorCode::InvalidJson { .. } => "invalid_json",
        ErrorCode::Truncated => "truncated",
        ErrorCode::NotAnObject => "not_an_object",
        ErrorCode::DuplicateKey { .. } => "duplicate_key",
        ErrorCode::TooDeep => "too_deep",
        ErrorCode::TooLarge => "too_large",
        ErrorCode::NumberOutOfRange => "number_out_of_range",
        ErrorCode::Invalid(field) => {
            let is_word = |byte: u8| byte.is_ascii_alphanumeric();
            let keyword = &field.keyword;
            let is_keyword = keyword.len() <= 32 && keyword.bytes().all(is_word);
            return if is_keyword && !keyword.is_empty() {
                format!("invalid:{keyword}")
            } else {
                "invalid".to_owned()
            };
        }
        ErrorCode::BrokenSchema => "broken_schema",
        ErrorCode::RepairFailed => "repair_failed",
        ErrorCode::UnknownTool { .. } => "unknown_tool",
        ErrorCode::NotAllowed { .. } => "not_allowed",
        ErrorCode::TypeMismatch { .. } => "type_mismatch",
        _ => "other",
    };
    code.to_owned()
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde asks for"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

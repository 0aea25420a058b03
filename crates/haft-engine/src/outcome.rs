//! How a run ended, and what came of it.

use haft_core::{
    ApprovalRequest, HydrationError, HydrationResult, Item, ModelError, Provenance, ToolKind, Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::session::Session;

/// The end of a run, always with its true reason.
#[derive(Debug)]
#[non_exhaustive]
pub enum End {
    /// The model gave its answer.
    Completed,
    /// A limit was reached.
    Incomplete {
        /// Which.
        reason: IncompleteReason,
        /// In words.
        message: String,
        /// What was going on.
        phase: RunPhase,
    },
    /// It could not go on.
    Failed {
        /// Whose fault it was.
        reason: FailedReason,
        /// In words.
        message: String,
    },
    /// Somebody stopped it.
    Cancelled,
    /// It goes on when the caller has answered.
    Waiting(Waiting),
}

impl End {
    /// One word: `completed`, `incomplete`, `failed`, `cancelled` or `waiting`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Incomplete { .. } => "incomplete",
            Self::Failed { .. } => "failed",
            Self::Cancelled => "cancelled",
            Self::Waiting(_) => "waiting",
        }
    }

    /// The end as events tell it.
    pub fn summary(&self) -> EndSummary {
        let (reason, message) = match self {
            Self::Completed | Self::Cancelled => (None, None),
            Self::Incomplete {
                reason, message, ..
            } => (Some(reason.as_str()), Some(message.clone())),
            Self::Failed { reason, message } => (Some(reason.as_str()), Some(message.clone())),
            Self::Waiting(waiting)
                if waiting.calls.is_empty() && waiting.provider_calls.is_empty() =>
            {
                (Some("approval"), None)
            }
            Self::Waiting(_) => (Some("function_outputs"), None),
        };
        EndSummary {
            end: self.name().to_owned(),
            reason: reason.map(str::to_owned),
            message,
        }
    }
}

/// The end of a run in words only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndSummary {
    /// `completed`, `incomplete`, `failed`, `cancelled` or `waiting`.
    pub end: String,
    /// The limit, the fault, or what is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl std::fmt::Display for EndSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the run ended as {}", self.end)?;
        if let Some(reason) = &self.reason {
            write!(f, " (`{reason}`)")?;
        }
        match &self.message {
            Some(message) => write!(f, ": {message}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for EndSummary {}

/// Which limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IncompleteReason {
    /// The answer's own token limit.
    MaxOutputTokens,
    /// The provider's content filter.
    ContentFilter,
    /// The round limit.
    MaxTurns,
    /// The call limit.
    MaxToolCalls,
    /// The token budget.
    Budget,
    /// The deadline.
    TimeLimit,
    /// The model went round in circles.
    LoopDetected,
}

impl IncompleteReason {
    /// As the Open Responses API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MaxOutputTokens => "max_output_tokens",
            Self::ContentFilter => "content_filter",
            Self::MaxTurns => "max_turns",
            Self::MaxToolCalls => "max_tool_calls",
            Self::Budget => "budget",
            Self::TimeLimit => "time_limit",
            Self::LoopDetected => "loop_detected",
        }
    }
}

/// What was going on when a limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    /// A request to the model.
    Request,
    /// A tool.
    Tool,
}

/// Why a run could not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailedReason {
    /// The provider failed, after so many attempts.
    Model {
        /// Its last words.
        error: ModelError,
        /// How often it was tried.
        attempts: u32,
    },
    /// The model did not call what `tool_choice` demands, or called in spite of it.
    ToolChoiceNotFollowed,
    /// The answer does not have the demanded form.
    OutputInvalid,
    /// The prompt was started anew too often.
    RestartLimit,
    /// The prompt could not be rendered again.
    Prompt,
}

impl FailedReason {
    /// One word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Model { .. } => "model_error",
            Self::ToolChoiceNotFollowed => "tool_choice_not_followed",
            Self::OutputInvalid => "output_invalid",
            Self::RestartLimit => "restart_limit",
            Self::Prompt => "prompt_error",
        }
    }
}

/// What a waiting run waits for.
#[derive(Debug, Default)]
pub struct Waiting {
    /// Calls that the caller executes; each wants exactly one output.
    pub calls: Vec<PendingCall>,
    /// Calls that somebody must allow or refuse.
    pub approvals: Vec<ApprovalRequest>,
    /// Calls of tools that the provider defines and the caller executes, such as `shell_call`. The next run
    /// needs an output item for each in its conversation.
    pub provider_calls: Vec<Item>,
}

/// A call that the caller executes.
#[derive(Debug)]
pub struct PendingCall {
    /// Its id: the output bears the same.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
    /// What was made of them: validated arguments and the record.
    pub hydration: HydrationResult,
}

/// What a call came to, as the model reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call.
    pub call_id: String,
    /// What the model reads.
    pub output: String,
    /// Whether it tells of a failure.
    #[serde(default)]
    pub is_error: bool,
}

/// One call of a run: what was asked, what was made of it, what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The call.
    pub call_id: String,
    /// The tool's name as the model wrote it.
    pub tool_name: String,
    /// Who executes it, if the tool is known.
    pub kind: Option<ToolKind>,
    /// In which round, from 1.
    pub round: u32,
    /// How the arguments were read.
    pub provenance: Provenance,
    /// What was wrong with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<HydrationError>,
    /// What a person or policy said, if one was asked or refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// What became of it.
    pub status: CallStatus,
    /// What the model reads; none while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult>,
    /// The value that the tool gave, also where the model does not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Whether the value is not what the tool's output schema says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub output_mismatch: bool,
    /// Whether its tool was deferred, and loaded because this call named it with valid arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loaded_by_call: bool,
    /// How long it ran.
    pub duration_ms: u64,
}

impl CallRecord {
    /// What the model read; empty while the call waits.
    pub fn output(&self) -> &str {
        self.result.as_ref().map_or("", |result| &result.output)
    }
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallStatus {
    /// It ran and succeeded.
    Succeeded,
    /// It ran and failed.
    Failed,
    /// It ran into a panic.
    Panicked,
    /// It ran too long.
    TimedOut,
    /// It was stopped while it ran.
    Stopped,
    /// The process died while it ran: whether it took effect is unknown.
    OutcomeUnknown,
    /// Its result was too large.
    TooLarge,
    /// Its result is not what its output schema says.
    InvalidOutput,
    /// Nobody offered such a tool, or this request does not allow it.
    Unknown,
    /// Its arguments were refused.
    Refused,
    /// A policy refused it.
    Denied,
    /// Nobody approved it.
    NotApproved,
    /// A limit or the end of the run came first.
    NotExecuted,
    /// It waits for the caller.
    Pending,
    /// It waits for somebody's word.
    Suspended,
    /// It was answered by the caller.
    Answered,
    /// It repeated an earlier call whose result the model has, and was left out.
    Suppressed,
}

impl CallStatus {
    /// Whether the tool's code ran, here or at the caller's.
    pub fn ran(self) -> bool {
        matches!(
            self,
            Self::Succeeded
                | Self::Failed
                | Self::Panicked
                | Self::TimedOut
                | Self::Stopped
                | Self::OutcomeUnknown
                | Self::TooLarge
                | Self::InvalidOutput
                | Self::Answered
        )
    }

    /// One word for events and logs; none for success.
    pub fn error_kind(self) -> Option<&'static str> {
        Some(match self {
            Self::Succeeded | Self::Answered | Self::Pending | Self::Suspended => return None,
            Self::Failed => "failed",
            Self::Panicked => "panicked",
            Self::TimedOut => "timed_out",
            Self::Stopped => "stopped",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::TooLarge => "too_large",
            Self::InvalidOutput => "invalid_output",
            Self::Unknown => "unknown_tool",
            Self::Refused => "invalid_arguments",
            Self::Denied => "denied",
            Self::NotApproved => "not_approved",
            Self::NotExecuted => "not_executed",
            Self::Suppressed => "suppressed",
        })
    }
}

/// What was counted in a run, under the names of the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// `haft.tools.injected`
    pub tools_injected: u64,
    /// `haft.disclosure.dynamic`
    pub disclosure_dynamic: u64,
    /// `haft.disclosure.restarts`
    pub disclosure_restarts: u64,
    /// `haft.tools.picked`
    pub tools_picked: u64,
    /// `haft.calls.suppressed`
    pub calls_suppressed: u64,
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// The model's last words.
    pub text: String,
    /// The words in which it declined, if it did.
    pub refusal: Option<String>,
    /// The answer in the demanded form, validated; only where one was demanded and given.
    pub output: Option<Value>,
    /// The items that this leg of the run added to the conversation.
    pub items: Vec<Item>,
    /// Every call of the run, in order, refused and failed ones too.
    pub tool_calls: Vec<CallRecord>,
    /// How many answers with calls there were.
    pub rounds: u32,
    /// What all requests of the run cost.
    pub usage: Usage,
    /// What was counted.
    pub counters: Counters,
    /// Where long results are kept, if they are: as long as the run waits, or where it was asked to
    /// keep them.
    pub spill_directory: Option<std::path::PathBuf>,
    /// The conversation to go on with.
    pub session: Session,
}

impl Outcome {
    /// Whether the model gave its answer within all limits.
    pub fn is_completed(&self) -> bool {
        matches!(self.end, End::Completed)
    }

    /// The outcome if the model gave its answer within all limits; else how the run ended, as an
    /// error for `?`.
    ///
    /// ```
    /// # async fn ask(run: haft_engine::Run) -> Result<String, Box<dyn std::error::Error>> {
    /// let outcome = run.await?.into_completed()?;
    /// # Ok(outcome.text)
    /// # }
    /// ```
    pub fn into_completed(self) -> Result<Self, EndSummary> {
        if self.is_completed() {
            Ok(self)
        } else {
            Err(self.end.summary())
        }
    }

    /// The answer as a value of a type of yours.
    ///
    /// It is there only if the run asked for that form, so check the end first.
    pub fn output_as<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(self.output.as_ref()?).ok()
    }
}

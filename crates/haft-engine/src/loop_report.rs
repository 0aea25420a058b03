//! What loop detection found, and how the model and the outcome are told.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a report leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoopAction {
    /// Nothing.
    Ignore,
    /// The call runs, and its result begins with the warning.
    Warn,
    /// Nothing of the batch runs, and the run ends.
    Terminate,
}

/// What repeats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LoopKind {
    /// Equal calls, not necessarily in a row.
    Exact {
        /// The tool.
        tool: String,
        /// How many, the reported one included.
        count: usize,
        /// Among how many calls, the reported one included.
        window: usize,
    },
    /// A sequence of calls.
    Pattern {
        /// The tools of the sequence, in order.
        tools: Vec<String>,
    },
    /// Equal calls with equal results.
    SameResult {
        /// The tool.
        tool: String,
        /// How many, the reported one included.
        count: usize,
    },
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopReport {
    /// Which one it is in this run, from 1. Finished calls are numbered on their own.
    pub number: usize,
    /// What repeats.
    #[serde(flatten)]
    pub kind: LoopKind,
    /// What is to be done.
    pub action: LoopAction,
}

impl LoopReport {
    /// The warning that goes in front of the result, word for word.
    pub fn warning(&self) -> String {
        let advice = match &self.kind {
            LoopKind::Exact { .. } | LoopKind::SameResult { .. } => "Change something",
            LoopKind::Pattern { .. } => "Break it",
        };
        let (number, sentence) = (self.number, self.sentence());
        format!("[loop warning {number}] {sentence} {advice} or answer with what you have.")
    }

    /// How often it was seen; for a sequence, the third time.
    pub fn count(&self) -> usize {
        match &self.kind {
            LoopKind::Exact { count, .. } | LoopKind::SameResult { count, .. } => *count,
            LoopKind::Pattern { .. } => 3,
        }
    }

    /// What repeats, as a sentence; it follows `Loop detected: ` where the run ends.
    pub fn sentence(&self) -> String {
        self.kind.to_string()
    }
}

impl fmt::Display for LoopKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact {
                tool,
                count,
                window,
            } => write!(
                f,
                "'{tool}' was called with identical arguments {count} times within the last \
                 {window} calls."
            ),
            Self::Pattern { tools } => {
                write!(f, "The call sequence {} keeps repeating.", tools.join(", "))
            }
            Self::SameResult { tool, count } => write!(
                f,
                "'{tool}' gave the same result {count} times for identical arguments."
            ),
        }
    }
}

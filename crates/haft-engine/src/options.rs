//! What bounds a run.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::detect::LoopDetection;

/// The options of the loop, under the names that they have in `haft.toml`, table `[loop]`.
///
/// ```
/// use haft_engine::LoopOptions;
/// let options = LoopOptions { max_rounds: 3, ..LoopOptions::default() };
/// assert_eq!(options.max_parallel, 8);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent switches of the operator, each named where it is set"
)]
pub struct LoopOptions {
    /// How many answers with calls are executed.
    pub max_rounds: u32,
    /// How many calls are executed here; those handed to the caller do not count.
    pub max_tool_calls: Option<u32>,
    /// How many tokens the run may send, summed over all its requests.
    pub max_input_tokens: Option<u64>,
    /// How many tokens it may receive. Not the limit of one answer: that is one of `ModelOptions`.
    pub max_output_tokens: Option<u64>,
    /// How many tokens it may use in all.
    pub max_total_tokens: Option<u64>,
    /// How long a call may take, in milliseconds; a tool's own `timeout_ms` wins.
    pub tool_timeout_ms: u64,
    /// How long somebody may take to answer a question about a call, in milliseconds.
    pub approval_timeout_ms: u64,
    /// How many calls run at the same time.
    pub max_parallel: usize,
    /// Whether the model gets one last request, without tools, at the round and call limits.
    pub final_turn: bool,
    /// Whether broken arguments are repaired; repaired calls are marked, and gated.
    pub repair: bool,
    /// When repeated calls are noticed, and what is done then.
    pub loop_detection: LoopDetection,
    /// From how many bytes on a result is kept in a file, and only its beginning sent.
    pub spill_bytes: Option<usize>,
    /// The largest result, in bytes; 1 MiB, or 64 MiB where results are spilled, if not said.
    pub max_result_bytes: Option<usize>,
    /// Whether a result that its tool's output schema refuses is an error.
    pub strict_output: bool,
}

impl Default for LoopOptions {
    fn default() -> Self {
        Self {
            max_rounds: 10,
            max_tool_calls: None,
            max_input_tokens: None,
            max_output_tokens: None,
            max_total_tokens: None,
            tool_timeout_ms: 30_000,
            approval_timeout_ms: 600_000,
            max_parallel: 8,
            final_turn: true,
            repair: false,
            loop_detection: LoopDetection::default(),
            spill_bytes: None,
            max_result_bytes: None,
            strict_output: false,
        }
    }
}

impl LoopOptions {
    /// The bytes that a result may have.
    pub fn result_limit(&self) -> usize {
        const MIB: usize = 1024 * 1024;
        let by_default = if self.spill_bytes.is_some() {
            64 * MIB
        } else {
            MIB
        };
        self.max_result_bytes.unwrap_or(by_default)
    }

    /// How long a call of a tool with this timeout of its own may take.
    pub(crate) fn timeout_of(&self, own: Option<u64>) -> Duration {
        Duration::from_millis(own.unwrap_or(self.tool_timeout_ms))
    }
}

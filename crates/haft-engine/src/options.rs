//! What bounds a run.

use std::time::Duration;

use haft_catalog::Binding;
use haft_core::Defer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::detect::LoopDetection;
use crate::retry::Backoff;

/// The options of the loop, under the names that they have in `haft.toml`, table `[loop]`.
///
/// ```
/// use haft_engine::LoopOptions;
/// let options = LoopOptions { max_rounds: 3, ..LoopOptions::default() };
/// assert_eq!(options.max_parallel, 8);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// How long a run may take, from the start of each of its legs.
    #[serde(with = "crate::duration::optional")]
    #[schemars(with = "Option<crate::duration::Written>")]
    pub deadline: Option<Duration>,
    /// How long one request to the model may take, to the end of its answer.
    #[serde(with = "crate::duration")]
    #[schemars(with = "crate::duration::Written")]
    pub request_timeout: Duration,
    /// How long a call may take; a tool's own `timeout_ms` wins.
    #[serde(with = "crate::duration")]
    #[schemars(with = "crate::duration::Written")]
    pub tool_timeout: Duration,
    /// How long somebody may take to answer a question about a call.
    #[serde(with = "crate::duration")]
    #[schemars(with = "crate::duration::Written")]
    pub approval_timeout: Duration,
    /// When failed requests are repeated.
    pub retry: Backoff,
    /// How many calls run at the same time.
    pub max_parallel: usize,
    /// Whether the model gets one last request, without tools, at the round and call limits and when a loop ends the
    /// run.
    pub final_turn: bool,
    /// Whether broken arguments are repaired; repaired calls are marked, and gated.
    pub repair: bool,
    /// When repeated calls are noticed, and what is done then.
    pub loop_detection: LoopDetection,
    /// From how many bytes on a result is kept apart, and only its beginning sent.
    pub spill_bytes: Option<usize>,
    /// The largest result, in bytes; 1 MiB, or 64 MiB where results are spilled, if not said.
    pub max_result_bytes: Option<usize>,
    /// Whether tools are held back until the model searches for them. A tool's own setting wins.
    pub defer: Defer,
    /// How many percent of the model's context the tools may take before `auto` holds them back.
    pub defer_percent: u8,
    /// How many tools there may be before `auto` holds them back, however small they are. Ten or fewer never are.
    pub defer_above: Option<usize>,
    /// How often a model that cannot take new tools in a running conversation is started anew.
    pub max_restarts: u32,
    /// Starts it anew even if it could.
    pub force_restart: bool,
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
            deadline: None,
            request_timeout: Duration::from_mins(20),
            tool_timeout: Duration::from_secs(30),
            approval_timeout: Duration::from_mins(10),
            retry: Backoff::default(),
            max_parallel: 8,
            final_turn: true,
            repair: false,
            loop_detection: LoopDetection::default(),
            spill_bytes: None,
            max_result_bytes: None,
            defer: Defer::Auto,
            defer_percent: 5,
            defer_above: None,
            max_restarts: 10,
            force_restart: false,
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

    /// So many tools are never too many to be shown at once.
    pub const FEW_TOOLS: usize = 10;

    /// Whether `auto` holds these tools back: their definitions take too much of what the model's context
    /// holds, or there are more of them than may be.
    pub fn defers(&self, tools: &Binding, context_tokens: Option<u64>) -> bool {
        /// What a context is taken to hold if nobody knows.
        const CONTEXT_TOKENS: u64 = 200_000;
        if tools.len() <= Self::FEW_TOOLS {
            return false;
        }
        if self.defer_above.is_some_and(|count| tools.len() > count) {
            return true;
        }
        let context = context_tokens.unwrap_or(CONTEXT_TOKENS);
        let room = context.saturating_mul(u64::from(self.defer_percent)) / 100;
        u64::try_from(tools.estimated_tokens()).unwrap_or(u64::MAX) > room
    }

    /// The name of a limit that is zero, with which nothing could run; none if all can be used.
    ///
    /// ```
    /// use haft_engine::LoopOptions;
    /// let options = LoopOptions { max_rounds: 0, ..LoopOptions::default() };
    /// assert_eq!(options.zero_limit(), Some("max_rounds"));
    /// ```
    pub fn zero_limit(&self) -> Option<&'static str> {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let timeout = self.tool_timeout.as_nanos();
        let limits = [
            ("max_rounds", Some(u64::from(self.max_rounds))),
            ("max_tool_calls", self.max_tool_calls.map(u64::from)),
            ("max_input_tokens", self.max_input_tokens),
            ("max_output_tokens", self.max_output_tokens),
            ("max_total_tokens", self.max_total_tokens),
            ("max_parallel", Some(count(self.max_parallel))),
            ("tool_timeout", Some(u64::from(timeout > 0))),
        ];
        let zero = limits.into_iter().find(|(_, limit)| *limit == Some(0));
        zero.map(|(name, _)| name)
    }

    /// How long a call of a tool with this timeout of its own may take.
    pub(crate) fn timeout_of(&self, own: Option<u64>) -> Duration {
        own.map_or(self.tool_timeout, Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_under_their_names_and_unknown_ones_are_refused() {
        let options: LoopOptions = serde_json::from_value(serde_json::json!({
            "max_rounds": 3,
            "max_total_tokens": 1000,
            "deadline": "2m",
            "tool_timeout": 500,
            "retry": {"attempts": 2},
            "loop_detection": {"same_result": true},
            "spill_bytes": 4096
        }))
        .unwrap();
        assert_eq!(options.deadline, Some(Duration::from_mins(2)));
        assert_eq!(options.tool_timeout, Duration::from_millis(500));
        assert_eq!((options.retry.attempts, options.max_parallel), (2, 8));
        let text = serde_json::to_string(&options).unwrap();
        assert_eq!(serde_json::from_str::<LoopOptions>(&text).unwrap(), options);
        let unknown = serde_json::from_str::<LoopOptions>(r#"{"max_round": 3}"#);
        assert!(unknown.unwrap_err().to_string().contains("max_round"));
    }
}

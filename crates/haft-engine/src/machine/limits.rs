//! Budgets and the deadline (`dynamic-tools.md` §14).

use crate::outcome::IncompleteReason;

use super::Machine;

impl Machine {
    pub(super) fn deadline_passed(&self) -> bool {
        self.environment
            .deadline
            .is_some_and(|deadline| self.now >= deadline)
    }

    /// The token limit that is exceeded, in words.
    pub(super) fn exceeded_budget(&mut self) -> Option<String> {
        let options = &self.environment.options;
        let limits = [
            ("input_tokens", options.max_input_tokens),
            ("output_tokens", options.max_output_tokens),
            ("total_tokens", options.max_total_tokens),
        ];
        let usage = self.progress().usage;
        let used = [
            usage.input_tokens,
            usage.output_tokens,
            usage.total_tokens(),
        ];
        limits
            .into_iter()
            .zip(used)
            .find_map(|((name, limit), used)| {
                let limit = limit.filter(|limit| used > *limit)?;
                Some(format!("Budget exceeded: {name} {used} > {limit}"))
            })
    }

    /// Whether another call may be executed.
    pub(super) fn call_limit_reached(&mut self) -> bool {
        let limit = self.environment.options.max_tool_calls;
        let executed = self.progress().calls_executed;
        limit.is_some_and(|limit| executed >= limit)
    }

    /// What is left of the answer's own token limit; none if it has none.
    pub(super) fn output_room(&mut self) -> Option<u64> {
        let limit = self.environment.model_options.max_output_tokens?;
        let used = self.progress().usage.output_tokens;
        Some(limit.saturating_sub(used))
    }

    /// Whether the answer's token limit leaves nothing to ask the model for. Providers refuse limits
    /// below a few tokens, so a rest of that size is none; a limit that was so small from the start
    /// is theirs to judge.
    pub(super) fn has_no_room(&mut self) -> bool {
        const SMALLEST: u64 = 16;
        let is_begun = self.progress().usage.output_tokens > 0;
        let room = self.output_room();
        room.is_some_and(|room| room == 0 || (is_begun && room < SMALLEST))
    }

    pub(super) fn end_by_budget(&mut self, message: String) {
        self.end_incomplete(IncompleteReason::Budget, message);
    }
}

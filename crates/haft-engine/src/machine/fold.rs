//! How a turn is closed: results become part of the conversation, and the run goes on, waits or ends.

use std::path::Path;

use haft_core::{FunctionCallOutput, Item, RawArguments, open_provider_calls};
use serde_json::Map;

use crate::event::EventKind;
use crate::loop_report::LoopAction;
use crate::outcome::{End, PendingCall, ToolResult, Waiting};
use crate::session::{LastTurn, OpenCall, OpenState};

use super::batch::{Batch, BatchCall, CallState};
use super::settle::Settled;
use super::{Machine, Phase};

impl Machine {
    /// Makes the results that there are part of the conversation, in call order. Gives what is
    /// wrong if the run must end because results repeat.
    pub(super) fn record_outputs(&mut self, batch: &mut Batch) -> Option<String> {
        let mut loop_found = None;
        for call in &mut batch.calls {
            let mut settled = match std::mem::replace(&mut call.state, CallState::Recorded) {
                CallState::Settled(settled) => settled,
                other => {
                    call.state = other;
                    continue;
                }
            };
            if let Some(words) = self.environment.error_words {
                settled.word_error(words);
            }
            let found = self.look_for_same_result(call, &mut settled);
            loop_found = loop_found.or(found);
            if let Some(warning) = call.warning.take() {
                settled.prefix(&warning);
            }
            let result = ToolResult {
                call_id: call.item.call_id.clone(),
                output: settled.output.to_text(),
                is_error: settled.is_error,
            };
            if let Some(record) = self.progress().records.get_mut(call.record) {
                record.result = Some(result);
            }
            let output = FunctionCallOutput {
                id: None,
                status: None,
                call_id: call.item.call_id.clone(),
                output: settled.output,
                is_error: settled.is_error,
                extra: Map::new(),
            };
            let output = output.referring_to(self.references(call));
            self.add(Item::FunctionCallOutput(output), call.is_hidden);
        }
        loop_found
    }

    /// Warns the model of results that repeat; gives what is wrong if the run must end.
    fn look_for_same_result(&mut self, call: &BatchCall, settled: &mut Settled) -> Option<String> {
        if !settled.status.ran() {
            return None;
        }
        let arguments = RawArguments::Text(call.item.arguments.clone());
        let text = match &call.raw_result {
            Some(raw) => raw.clone(),
            None => settled.output.to_text(),
        };
        let report = self
            .progress()
            .detector
            .finished(&call.item.name, &arguments, &text);
        let mut report = report?;
        self.decide(&mut report);
        self.tell_loop(&report, &call.item.call_id);
        if report.action == LoopAction::Warn {
            settled.prefix(&report.warning());
        }
        (report.action == LoopAction::Terminate).then(|| report.sentence())
    }

    /// Nothing is left to be done here for this turn: go on, wait, or end.
    pub(super) fn close_turn(&mut self, mut batch: Batch) {
        let loop_found = self.record_outputs(&mut batch);
        if batch
            .calls
            .iter()
            .any(|call| !matches!(call.state, CallState::Recorded))
        {
            return self.wait(batch);
        }
        let tools = self.tools.clone();
        let progress = self.progress();
        progress.open.clear();
        progress.rounds += 1;
        let records = batch.calls.iter().map(|call| call.record);
        let mut records = records.filter_map(|record| progress.records.get(record));
        let ran = records.any(|record| record.status.ran() && !tools.is_search(&record.tool_name));
        progress.tool_ran |= ran;
        let only_forbidden = batch.calls.iter().all(BatchCall::is_forbidden);
        progress.forbidden_rounds = if only_forbidden {
            progress.forbidden_rounds + 1
        } else {
            0
        };
        let forbidden_rounds = progress.forbidden_rounds;
        self.tell_results(&batch);
        if !self.disclose(&batch) {
            return;
        }
        if let Some(sentence) = loop_found {
            self.progress().loop_message = Some(format!("Loop detected: {sentence}"));
            return self.reach_limit(LastTurn::Loop);
        }
        if batch.call_limit_hit {
            return self.reach_limit(LastTurn::ToolCalls);
        }
        if forbidden_rounds >= 2 {
            self.progress().last_turn = Some(LastTurn::ForbiddenCalls);
        }
        let open = open_provider_calls(self.session.conversation.items());
        if !open.is_empty() {
            let open = open.into_iter().cloned().collect();
            return self.wait_for_provider_calls(open);
        }
        self.begin_request();
    }

    /// Ends this leg until the caller has executed calls of tools that the provider defines.
    pub(super) fn wait_for_provider_calls(&mut self, provider_calls: Vec<Item>) {
        self.finish(End::Waiting(Waiting {
            provider_calls,
            ..Waiting::default()
        }));
    }

    /// Tells the results of a turn, in call order.
    pub(super) fn tell_results(&mut self, batch: &Batch) {
        let records = &self.progress().records;
        let calls = batch
            .calls
            .iter()
            .filter_map(|call| records.get(call.record));
        let results: Vec<_> = calls.filter_map(|call| call.result.clone()).collect();
        if !results.is_empty() {
            self.emit(EventKind::ToolResults { results });
        }
    }

    /// Makes the calls of a turn that is under way part of the session, so that another process can
    /// go on with them.
    pub(super) fn note_open_calls(&mut self) {
        let Phase::Executing(batch) = &self.phase else {
            return;
        };
        let open = batch.calls.iter().map(BatchCall::to_open).collect();
        let call_limit_hit = batch.call_limit_hit;
        let progress = self.progress();
        progress.open = open;
        progress.call_limit_hit = call_limit_hit;
    }

    pub(super) fn note_spill_directory(&mut self) {
        if let Some(spill) = &self.environment.spill {
            let directory = spill.directory().map(Path::to_owned);
            self.progress().spill_directory = directory;
        }
    }

    /// Ends this leg of the run until the caller has answered.
    fn wait(&mut self, batch: Batch) {
        let open = open_provider_calls(self.session.conversation.items());
        let mut waiting = Waiting {
            provider_calls: open.into_iter().cloned().collect(),
            ..Waiting::default()
        };
        let mut open = Vec::new();
        for call in batch.calls {
            let state = match &call.state {
                CallState::Pending => OpenState::Pending,
                CallState::Suspended(reason) => {
                    waiting.approvals.extend(call.question(reason));
                    OpenState::Suspended {
                        reason: reason.clone(),
                    }
                }
                CallState::Recorded => OpenState::Answered,
                _ => OpenState::Held,
            };
            open.push(OpenCall {
                item: call.item.clone(),
                warning: call.warning,
                record: call.record,
                hidden: call.is_hidden,
                state: state.clone(),
            });
            if state == OpenState::Pending {
                waiting.calls.push(PendingCall {
                    call_id: call.item.call_id,
                    name: call.item.name,
                    arguments: call.item.arguments,
                    hydration: call.hydration,
                });
            }
        }
        if let Some(spill) = &self.environment.spill {
            // What the model may recall must be there when the run goes on.
            spill.stay();
        }
        self.note_spill_directory();
        self.progress().open = open;
        self.progress().call_limit_hit = batch.call_limit_hit;
        self.finish(End::Waiting(waiting));
    }
}

//! What came of a call, and how a turn is closed.

use haft_core::{
    CallOutput, ContentPart, FunctionCallOutput, Item, OutputPart, PolicyCall, RawArguments,
    ToolOutput,
};
use serde_json::{Map, Value};

use crate::event::EventKind;
use crate::feedback::FeedbackMemory;
use crate::loop_report::LoopAction;
use crate::outcome::{CallStatus, End, IncompleteReason, PendingCall, ToolResult, Waiting};
use crate::policies::tell_all;
use crate::session::{LastTurn, OpenCall, OpenState};
use crate::spill::{RECALL_TOOL, SpillStore};
use crate::texts;

use super::batch::{Batch, BatchCall, CallState};
use super::effect::{Effect, Executed};
use super::{Machine, Phase};

/// A call's result.
#[derive(Debug, Clone)]
pub(super) struct Settled {
    pub(super) status: CallStatus,
    pub(super) output: CallOutput,
    pub(super) is_error: bool,
}

impl Settled {
    pub(super) fn error(status: CallStatus, text: String) -> Self {
        Self {
            status,
            output: CallOutput::Text(text),
            is_error: true,
        }
    }

    fn prefix(&mut self, warning: &str) {
        match &mut self.output {
            CallOutput::Text(text) => *text = format!("{warning}\n\n{text}"),
            CallOutput::Parts(parts) => parts.insert(
                0,
                ContentPart::InputText {
                    text: warning.to_owned(),
                },
            ),
        }
    }
}

/// What a tool gave, looked at.
struct Judged {
    settled: Settled,
    value: Option<Value>,
    output_mismatch: bool,
}

impl From<Settled> for Judged {
    fn from(settled: Settled) -> Self {
        Self {
            settled,
            value: None,
            output_mismatch: false,
        }
    }
}

impl Machine {
    /// A call is over: judge what it gave, tell, commit or undo, put away what is long.
    pub(super) fn call_finished(&mut self, at: usize, executed: Executed) {
        let Phase::Executing(batch) = &mut self.phase else {
            return;
        };
        let mut batch = std::mem::take(batch);
        if let Some(call) = batch.calls.get_mut(at)
            && matches!(call.state, CallState::Running)
        {
            let judged = self.judge_result(call, executed);
            if let Some(record) = self.progress().records.get_mut(call.record) {
                record.value = judged.value;
                record.output_mismatch = judged.output_mismatch;
            }
            let mut settled = judged.settled;
            self.append_feedback(call, &mut settled);
            match self.too_long_to_send(call, &settled) {
                Some(text) => {
                    let call_id = call.item.call_id.clone();
                    self.effects.push_back(Effect::Spill {
                        call: at,
                        call_id,
                        text,
                    });
                    self.settle(call, settled.clone());
                    call.state = CallState::Spilling(settled);
                }
                None => self.settle(call, settled),
            }
        }
        if self.deadline_passed() {
            self.phase = Phase::Executing(batch);
            return self.expire();
        }
        self.advance(batch);
    }

    /// A long result was put away: only its beginning goes to the model.
    pub(super) fn call_spilled(&mut self, at: usize, kept: bool) {
        let Phase::Executing(batch) = &mut self.phase else {
            return;
        };
        let mut batch = std::mem::take(batch);
        if let Some(call) = batch.calls.get_mut(at)
            && let CallState::Spilling(settled) = &call.state
        {
            let mut settled = settled.clone();
            if kept {
                let text = settled.output.to_text();
                settled.output = CallOutput::Text(SpillStore::head(&text, &call.item.call_id));
            } else {
                tracing::warn!(
                    call_id = call.item.call_id,
                    "a long result could not be put away"
                );
            }
            call.state = CallState::Settled(settled);
        }
        self.advance(batch);
    }

    fn too_long_to_send(&self, call: &BatchCall, settled: &Settled) -> Option<String> {
        let limit = self.environment.options.spill_bytes?;
        if settled.is_error || call.item.name == RECALL_TOOL {
            return None;
        }
        let text = settled.output.to_text();
        (text.len() > limit).then_some(text)
    }

    fn judge_result(&mut self, call: &BatchCall, executed: Executed) -> Judged {
        let tool = call.item.name.as_str();
        match executed {
            Executed::Panicked(words) => {
                Settled::error(CallStatus::Panicked, texts::panicked(tool, &words)).into()
            }
            Executed::TimedOut => {
                let text = texts::timed_out(tool, call.timeout);
                Settled::error(CallStatus::TimedOut, text).into()
            }
            Executed::Returned(Err(error)) => {
                let text = texts::failed(tool, error.message());
                Settled::error(CallStatus::Failed, text).into()
            }
            Executed::Returned(Ok(output)) if !output.is_success() => {
                Settled::error(CallStatus::Failed, output.text_for_model()).into()
            }
            Executed::Returned(Ok(output)) => self.judge_success(call, &output),
        }
    }

    fn judge_success(&mut self, call: &BatchCall, output: &ToolOutput) -> Judged {
        let tool = call.item.name.as_str();
        let text = output.text_for_model();
        let limit = self.environment.options.result_limit();
        let bytes = text.len() + image_bytes(output);
        if bytes > limit {
            let text = texts::too_large(tool, bytes, limit);
            return Settled::error(CallStatus::TooLarge, text).into();
        }
        let Some(definition) = &call.definition else {
            return Settled::error(CallStatus::Failed, text).into();
        };
        let errors = self
            .environment
            .output_validators
            .errors(definition, output.as_value());
        if !errors.is_empty() && self.environment.options.strict_output {
            let text = texts::invalid_output(tool, &errors.join("; "));
            return Settled::error(CallStatus::InvalidOutput, text).into();
        }
        if let Some(transaction) = &call.transaction {
            let policy_call = PolicyCall {
                hydration: &call.hydration,
                definition,
            };
            tell_all(
                &self.environment.policies,
                &policy_call,
                output,
                transaction,
            );
        }
        Judged {
            settled: Settled {
                status: CallStatus::Succeeded,
                output: self.for_model(output, text),
                is_error: false,
            },
            value: output.as_value().cloned(),
            output_mismatch: !errors.is_empty(),
        }
    }

    /// Text, or text and images where the model takes images.
    fn for_model(&self, output: &ToolOutput, text: String) -> CallOutput {
        let has_images = image_bytes(output) > 0;
        if !has_images || !self.environment.model.capabilities().image_input {
            return CallOutput::Text(text);
        }
        let mut parts = vec![ContentPart::InputText { text }];
        parts.extend(output.as_parts().iter().filter_map(|part| match part {
            OutputPart::Image { media_type, data } => Some(ContentPart::InputImage {
                image_url: format!("data:{media_type};base64,{data}"),
                detail: None,
            }),
            _ => None,
        }));
        CallOutput::Parts(parts)
    }

    fn append_feedback(&self, call: &BatchCall, settled: &mut Settled) {
        let environment = &self.environment;
        if environment.feedback.is_empty() {
            return;
        }
        let mut blocks = Vec::new();
        let counted = environment.state.update::<FeedbackMemory>(|memory| {
            blocks = environment.feedback.after_call(
                memory,
                &call.item.name,
                &call.item.call_id,
                !settled.is_error,
                self.now.to_duration(),
            );
        });
        if let Err(error) = counted {
            tracing::error!(%error, "feedback has no memory");
        }
        for block in blocks {
            match &mut settled.output {
                CallOutput::Text(text) => {
                    text.push_str("\n\n");
                    text.push_str(&block);
                }
                CallOutput::Parts(parts) => parts.push(ContentPart::InputText { text: block }),
            }
        }
    }

    /// Commits or undoes a call's changes, writes its result down and tells of it.
    pub(super) fn settle(&mut self, call: &mut BatchCall, mut settled: Settled) {
        close_transaction(call, &mut settled);
        let duration = call.started.map(|started| self.now.since(started));
        let duration_ms = duration.map_or(0, |duration| {
            u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
        });
        let success = !settled.is_error;
        let mut output_mismatch = false;
        if let Some(record) = self.progress().records.get_mut(call.record) {
            record.status = settled.status;
            record.duration_ms = duration_ms;
            output_mismatch = record.output_mismatch;
        }
        self.emit(EventKind::ToolInvoked {
            tool_name: call.item.name.clone(),
            call_id: call.item.call_id.clone(),
            success,
            error_kind: settled.status.error_kind(),
            duration_ms,
            repaired: call.hydration.provenance.repaired,
            auto_picked: false,
            output_mismatch,
        });
        call.state = CallState::Settled(settled);
    }

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
            self.add_item(Item::FunctionCallOutput(FunctionCallOutput {
                id: None,
                status: None,
                call_id: call.item.call_id.clone(),
                output: settled.output,
                is_error: settled.is_error,
                extra: Map::new(),
            }));
        }
        loop_found
    }

    /// Warns the model of results that repeat; gives what is wrong if the run must end.
    fn look_for_same_result(&mut self, call: &BatchCall, settled: &mut Settled) -> Option<String> {
        if !settled.status.ran() {
            return None;
        }
        let arguments = RawArguments::Text(call.item.arguments.clone());
        let text = settled.output.to_text();
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
        let progress = self.progress();
        progress.open.clear();
        progress.rounds += 1;
        let records = batch
            .calls
            .iter()
            .filter_map(|call| progress.records.get(call.record));
        let records: Vec<_> = records.collect();
        let ran = records.iter().any(|record| record.status.ran());
        let results = records
            .iter()
            .filter_map(|record| record.result.clone())
            .collect();
        progress.tool_ran |= ran;
        let only_forbidden = batch.calls.iter().all(BatchCall::is_forbidden);
        progress.forbidden_rounds = if only_forbidden {
            progress.forbidden_rounds + 1
        } else {
            0
        };
        let forbidden_rounds = progress.forbidden_rounds;
        self.emit(EventKind::ToolResults { results });
        if let Some(sentence) = loop_found {
            let message = format!("Loop detected: {sentence}");
            return self.end_incomplete(IncompleteReason::LoopDetected, message);
        }
        if batch.call_limit_hit {
            return self.reach_limit(LastTurn::ToolCalls);
        }
        if forbidden_rounds >= 2 {
            self.progress().last_turn = Some(LastTurn::ForbiddenCalls);
        }
        self.begin_request();
    }

    /// Ends this leg of the run until the caller has answered.
    fn wait(&mut self, batch: Batch) {
        let mut waiting = Waiting::default();
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
        self.progress().open = open;
        self.progress().call_limit_hit = batch.call_limit_hit;
        self.finish(End::Waiting(waiting));
    }
}

/// A call that succeeded keeps its changes, any other loses them. One whose changes cannot be kept
/// has not succeeded.
fn close_transaction(call: &mut BatchCall, settled: &mut Settled) {
    let Some(transaction) = call.transaction.take() else {
        return;
    };
    let call_id = call.item.call_id.as_str();
    if settled.is_error {
        if let Err(error) = transaction.rollback() {
            tracing::error!(%error, call_id, "a call could not be undone");
        }
    } else if let Err(error) = transaction.commit() {
        tracing::error!(%error, call_id, "a call's changes could not be kept");
        let text = texts::failed(&call.item.name, "its changes could not be kept.");
        *settled = Settled::error(CallStatus::Failed, text);
    }
}

fn image_bytes(output: &ToolOutput) -> usize {
    output
        .as_parts()
        .iter()
        .map(|part| match part {
            OutputPart::Image { data, .. } => data.len(),
            _ => 0,
        })
        .sum()
}

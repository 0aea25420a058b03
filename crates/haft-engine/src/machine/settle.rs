//! What came of a call, and how a turn is closed.

use haft_core::{CallOutput, ContentPart, OutputPart, PolicyCall, ToolDefinition, ToolOutput};
use serde_json::Value;

use crate::event::EventKind;
use crate::feedback::FeedbackMemory;
use crate::outcome::CallStatus;
use crate::policies::tell_all;
use crate::session::OpenState;
use crate::spill::{RECALL_TOOL, SpillStore};
use crate::texts;

use super::batch::{BatchCall, CallState};
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

    pub(super) fn to_open(&self) -> OpenState {
        OpenState::Settled {
            status: self.status,
            output: self.output.clone(),
            is_error: self.is_error,
        }
    }

    /// Keeps the beginning of a long result that nobody can read again.
    pub(super) fn shorten(&mut self) {
        let text = self.output.to_text();
        self.output = CallOutput::Text(texts::shortened(&text));
    }

    /// Writes a failure in the words that the host wants.
    pub(super) fn word_error(&mut self, words: fn(&str) -> String) {
        if self.is_error {
            self.output = CallOutput::Text(words(&self.output.to_text()));
        }
    }

    pub(super) fn prefix(&mut self, warning: &str) {
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
        if matches!(executed, Executed::TimedOut) && self.deadline_passed() {
            // Its time was what the deadline left of it: the deadline ended it.
            self.phase = Phase::Executing(batch);
            return self.expire();
        }
        if let Some(call) = batch.calls.get_mut(at)
            && matches!(call.state, CallState::Running)
        {
            let judged = self.judge_result(call, executed);
            if let Some(record) = self.progress().records.get_mut(call.record) {
                record.value = judged.value;
                record.output_mismatch = judged.output_mismatch;
            }
            let mut settled = judged.settled;
            if self.environment.options.loop_detection.same_result {
                call.raw_result = Some(settled.output.to_text());
            }
            self.append_feedback(call, &mut settled);
            match self.too_long_to_send(call, &settled) {
                Some(text) => {
                    let call_id = call.item.call_id.clone();
                    self.effects.push_back(Effect::Spill {
                        call: at,
                        call_id,
                        text,
                    });
                    self.settle(call, settled);
                    call.spill();
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
                settled.shorten();
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
        let bytes = text.len() + image_bytes(output) + output.hidden_bytes();
        if bytes > limit {
            let text = texts::too_large(tool, bytes, limit);
            return Settled::error(CallStatus::TooLarge, text).into();
        }
        let Some(definition) = &call.definition else {
            return Settled::error(CallStatus::Failed, text).into();
        };
        let errors = self.output_errors(definition, output.as_value(), &text);
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
                &self.environment.policies_for(definition),
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

    /// What is wrong with a result by its tool's output schema. Text that is JSON counts as a value:
    /// executors and callers have nothing else to give.
    pub(super) fn output_errors(
        &self,
        definition: &ToolDefinition,
        value: Option<&Value>,
        text: &str,
    ) -> Vec<String> {
        if definition.output_schema().is_none() {
            return Vec::new();
        }
        let read = match value {
            Some(_) => None,
            None => serde_json::from_str(text).ok(),
        };
        let validators = &self.environment.output_validators;
        validators.errors(definition, value.or(read.as_ref()))
    }

    /// Text, or text and images where the model takes images.
    fn for_model(&self, output: &ToolOutput, text: String) -> CallOutput {
        let has_images = image_bytes(output) > 0;
        if !has_images || !self.environment.model.capabilities().image_input {
            return CallOutput::Text(text);
        }
        let parts = output.parts_for_model().into_iter();
        let parts = parts.filter_map(|part| match part {
            OutputPart::Text { text } => Some(ContentPart::InputText { text }),
            OutputPart::Image { media_type, data } => Some(ContentPart::InputImage {
                image_url: format!("data:{media_type};base64,{data}"),
                detail: None,
            }),
            _ => None,
        });
        CallOutput::Parts(parts.collect())
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

    /// Errors have the same limit as results: they go to the model too.
    fn bound(&self, call: &BatchCall, settled: &mut Settled) {
        let limit = self.environment.options.result_limit();
        if settled.is_error
            && let CallOutput::Text(text) = &mut settled.output
            && text.len() > limit
        {
            *text = texts::too_large(&call.item.name, text.len(), limit);
        }
    }

    /// Commits or undoes a call's changes, writes its result down and tells of it.
    pub(super) fn settle(&mut self, call: &mut BatchCall, mut settled: Settled) {
        close_transaction(call, &mut settled);
        self.bound(call, &mut settled);
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
        if success && self.tools.is_search(&call.item.name) {
            let event = EventKind::ToolsFound {
                call_id: call.item.call_id.clone(),
                tool_names: self.found_by(call),
            };
            self.emit(event);
        }
        self.emit(EventKind::ToolInvoked {
            tool_name: call.item.name.clone(),
            call_id: call.item.call_id.clone(),
            success,
            error_kind: settled.status.error_kind(),
            duration_ms,
            repaired: call.hydration.provenance.repaired,
            auto_picked: call.is_auto_picked,
            output_mismatch,
            output: settled.output.clone(),
        });
        call.state = CallState::Settled(settled);
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

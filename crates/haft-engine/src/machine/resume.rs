//! A waiting run goes on.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft_core::{
    CallOutput, CallSource, ContentPart, Decision, FinishReason, FunctionCallOutput,
    HydrationResult, Item, PolicyCall, RawArguments, ToolCall, ToolOutput,
};

use crate::moment::Moment;
use crate::outcome::CallStatus;
use crate::policies::tell_all;
use crate::session::{OpenCall, OpenState, Session};
use crate::texts;

use super::batch::{Batch, BatchCall, CallState};
use super::settle::Settled;
use super::{Environment, Machine};

/// What a waiting run was waiting for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answers {
    outputs: Vec<FunctionCallOutput>,
    decisions: Vec<(String, Decision)>,
    input: Vec<Item>,
}

impl Answers {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds the output of a call that the caller executed.
    pub(crate) fn push_output(&mut self, output: FunctionCallOutput) {
        self.outputs.push(output);
    }

    /// Adds somebody's word about a call.
    pub(crate) fn push_decision(&mut self, call_id: impl Into<String>, decision: Decision) {
        self.decisions.push((call_id.into(), decision));
    }

    /// Adds something to say behind the outputs.
    pub(crate) fn push_input(&mut self, item: Item) {
        self.input.push(item);
    }

    /// Checks that exactly what is open is answered, each once.
    pub(crate) fn check(&self, session: &Session) -> Result<(), ResumeError> {
        let pending: HashSet<&str> = session.pending_calls().collect();
        let suspended: HashSet<&str> = session.suspended_calls().collect();
        let mut answered = HashSet::new();
        let outputs = self.outputs.iter().map(|output| output.call_id.as_str());
        let decided = self.decisions.iter().map(|(call_id, _)| call_id.as_str());
        let given = outputs
            .map(|id| (id, &pending))
            .chain(decided.map(|id| (id, &suspended)));
        for (call_id, open) in given {
            let call_id_owned = || call_id.to_owned();
            if !open.contains(call_id) {
                return Err(ResumeError::UnknownCall {
                    call_id: call_id_owned(),
                });
            }
            if !answered.insert(call_id) {
                return Err(ResumeError::DuplicateAnswer {
                    call_id: call_id_owned(),
                });
            }
        }
        let missing = |mut open: Box<dyn Iterator<Item = &str> + '_>| {
            open.find(|call_id| !answered.contains(call_id))
                .map(str::to_owned)
        };
        if let Some(call_id) = missing(Box::new(session.pending_calls())) {
            return Err(ResumeError::MissingOutput { call_id });
        }
        if let Some(call_id) = missing(Box::new(session.suspended_calls())) {
            return Err(ResumeError::MissingDecision { call_id });
        }
        Ok(())
    }
}

/// Answers that do not fit what a run waits for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// Nothing of that id is open.
    #[error("no open call has the id `{call_id}`: answer exactly the calls that the run waits for")]
    UnknownCall {
        /// The id.
        call_id: String,
    },
    /// One call is answered twice.
    #[error("call `{call_id}` is answered twice: keep one answer")]
    DuplicateAnswer {
        /// The id.
        call_id: String,
    },
    /// A call of the caller's lacks its output.
    #[error("call `{call_id}` has no output: add it with `output`")]
    MissingOutput {
        /// The id.
        call_id: String,
    },
    /// Calls and outputs do not belong together.
    #[error(transparent)]
    History(haft_core::HistoryError),
    /// Nobody said whether a call may run.
    #[error("call `{call_id}` waits for a decision: add it with `approve` or `deny`")]
    MissingDecision {
        /// The id.
        call_id: String,
    },
}

impl Machine {
    /// Goes on with a run that waited.
    pub(crate) fn resume(
        environment: Arc<Environment>,
        mut session: Session,
        answers: Answers,
        now: Moment,
        seed: u64,
    ) -> Result<Self, ResumeError> {
        answers.check(&session)?;
        let run = session.run.as_mut();
        let (open, call_limit_hit) = run.map_or((Vec::new(), false), |run| {
            (std::mem::take(&mut run.open), run.call_limit_hit)
        });
        let mut machine = Self::new(environment, session, now, seed);
        machine.progress().queued.extend(answers.input);
        let mut outputs: HashMap<_, _> = answers
            .outputs
            .into_iter()
            .map(|output| (output.call_id.clone(), output))
            .collect();
        let mut decisions: HashMap<_, _> = answers.decisions.into_iter().collect();
        let mut batch = Batch {
            calls: Vec::with_capacity(open.len()),
            call_limit_hit,
        };
        let mut is_reading = false;
        for call in open {
            let output = outputs.remove(&call.item.call_id);
            let decision = decisions.remove(&call.item.call_id);
            let mut call = machine.take_up(call, output, decision, &mut is_reading);
            machine.settle_refused_or_wait(&mut call, &mut is_reading);
            batch.calls.push(call);
        }
        if batch.calls.is_empty() {
            machine.begin_request();
        } else {
            machine.advance(batch);
        }
        Ok(machine)
    }

    /// An open call as it goes on.
    fn take_up(
        &mut self,
        open: OpenCall,
        output: Option<FunctionCallOutput>,
        decision: Option<Decision>,
        is_reading: &mut bool,
    ) -> BatchCall {
        let source = self
            .progress()
            .records
            .get(open.record)
            .and_then(|record| record.provenance.source.clone());
        let call = ToolCall {
            name: open.item.name.clone(),
            call_id: Some(open.item.call_id.clone()),
            arguments: RawArguments::Text(open.item.arguments.clone()),
            finish: FinishReason::Normal,
            source: source.or_else(|| Some(CallSource::default())),
        };
        // The id is the call's own already: ids are only given to new calls.
        self.session.call_ids.release(&open.item.call_id);
        let binding = self.binding();
        let hydration = self.hydrate(&call, &binding);
        if open.state == OpenState::Answered {
            return BatchCall::recorded(open, hydration);
        }
        let is_as_shown = self.is_as_shown(open.record, &hydration);
        let mut call = self.batch_call(open.item, hydration, &binding, Some(open.record));
        call.warning = open.warning;
        call.is_hidden = open.hidden;
        let state = match open.state {
            OpenState::Settled {
                status,
                output,
                is_error,
            } => {
                // Told when it happened.
                call.state = CallState::Settled(Settled {
                    status,
                    output,
                    is_error,
                });
                return call;
            }
            OpenState::Begun { approved } => {
                self.take_up_begun(&mut call, approved && is_as_shown);
                return call;
            }
            state => state,
        };
        // What the caller did counts, whatever this process knows about the tool.
        if let Some(output) = output {
            self.take_output(&mut call, output);
            return call;
        }
        self.settle_refused_or_wait(&mut call, is_reading);
        if !matches!(call.state, CallState::Ready) || call.is_early {
            return call;
        }
        match decision {
            // A word about another tool or other arguments is none: somebody is asked again.
            Some(Decision::Allow) if is_as_shown => {
                self.note_verdict(&call, "approved".into());
                call.state = CallState::Approved;
            }
            Some(Decision::Deny(reason)) => self.refuse(&mut call, reason.as_deref()),
            Some(Decision::Suspend) => {
                let reason = match state {
                    OpenState::Suspended { reason } => reason,
                    _ => String::new(),
                };
                call.state = CallState::Suspended(reason);
            }
            Some(Decision::Allow) | None => {}
        }
        call
    }

    /// A call that was running when its process died: it may have had its effect or not.
    fn take_up_begun(&mut self, call: &mut BatchCall, is_approved: bool) {
        let annotations = call.definition.as_ref().map(|it| it.annotations());
        let is_repeatable = annotations.is_some_and(|it| it.read_only || it.idempotent);
        if !is_repeatable {
            let text = texts::outcome_unknown(&call.item.name);
            return self.settle(call, Settled::error(CallStatus::OutcomeUnknown, text));
        }
        // It counts again when it begins again.
        let progress = self.progress();
        progress.calls_executed = progress.calls_executed.saturating_sub(1);
        if is_approved && call.hydration.errors.is_empty() && matches!(call.state, CallState::Ready)
        {
            call.state = CallState::Approved;
        }
    }

    /// Whether a call is still the one that its record tells of: same tool, same arguments.
    fn is_as_shown(&mut self, record: usize, hydration: &HydrationResult) -> bool {
        let now = &hydration.provenance;
        self.progress().records.get(record).is_some_and(|record| {
            let then = &record.provenance;
            then.definition_fingerprint == now.definition_fingerprint
                && then.validated == now.validated
                && then.parsed == now.parsed
        })
    }

    /// The caller's output of a call that it executed.
    fn take_output(&mut self, call: &mut BatchCall, output: FunctionCallOutput) {
        let text = output.output.to_text();
        let limit = self.environment.options.result_limit();
        let bytes = byte_size(&output.output);
        if bytes > limit {
            let text = texts::too_large(&call.item.name, bytes, limit);
            return self.settle(call, Settled::error(CallStatus::TooLarge, text));
        }
        let errors = match &call.definition {
            Some(definition) if !output.is_error => self.output_errors(definition, None, &text),
            _ => Vec::new(),
        };
        if !errors.is_empty() && self.environment.options.strict_output {
            let text = texts::invalid_output(&call.item.name, &errors.join("; "));
            return self.settle(call, Settled::error(CallStatus::InvalidOutput, text));
        }
        if let Some(record) = self.progress().records.get_mut(call.record) {
            record.output_mismatch = !errors.is_empty();
        }
        if let Some(definition) = call.definition.clone().filter(|_| !output.is_error) {
            let state = &self.environment.state;
            let transaction = state.begin(&call.item.call_id, &call.item.name);
            let policy_call = PolicyCall {
                hydration: &call.hydration,
                definition: &definition,
            };
            let given = ToolOutput::text(text);
            tell_all(
                &self.environment.policies_for(&definition),
                &policy_call,
                &given,
                &transaction,
            );
            call.transaction = Some(transaction);
        }
        let settled = Settled {
            status: CallStatus::Answered,
            output: output.output,
            is_error: output.is_error,
        };
        self.settle(call, settled);
    }
}

/// How much there is of an output, images included.
fn byte_size(output: &CallOutput) -> usize {
    match output {
        CallOutput::Text(text) => text.len(),
        CallOutput::Parts(parts) => parts
            .iter()
            .map(|part| match part {
                ContentPart::InputImage { image_url, .. } => image_url.len(),
                other => other.text().map_or(0, str::len),
            })
            .sum(),
    }
}

//! The calls of one answer: what they are, and which of them may start.

use std::sync::Arc;
use std::time::Duration;

use haft_catalog::Binding;
use haft_core::{
    ApprovalRequest, ErrorCode, FunctionCall, HydrationResult, Item, ModelResponse, Policy,
    RawArguments, ToolCall, ToolChoice, ToolDefinition, ToolKind, Transaction,
};
use serde_json::Value;

use crate::calls::{as_tool_call, finish_of, source_of};
use crate::event::EventKind;
use crate::executor::ToolExecutor;
use crate::loop_report::{LoopAction, LoopReport};
use crate::moment::Moment;
use crate::outcome::{CallRecord, CallStatus};
use crate::session::{OpenCall, OpenState};
use crate::texts::{self, NotExecuted};

use super::Machine;
use super::settle::Settled;

/// The calls of one answer, in order.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) calls: Vec<BatchCall>,
    /// Calls were left out because the call limit was reached.
    pub(super) call_limit_hit: bool,
}

impl Batch {
    pub(super) fn is_running(&self, call_id: &str) -> bool {
        let mut calls = self.calls.iter();
        calls.any(|call| call.item.call_id == call_id && matches!(call.state, CallState::Running))
    }
}

/// One of them.
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts about one call, each named where it is set"
)]
pub(super) struct BatchCall {
    pub(super) item: FunctionCall,
    /// Its place in the run's records.
    pub(super) record: usize,
    pub(super) hydration: HydrationResult,
    pub(super) definition: Option<Arc<ToolDefinition>>,
    pub(super) who: Who,
    /// Waits for all earlier calls and holds back the later ones.
    pub(super) is_barrier: bool,
    /// What to tell the model about calling it again and again.
    pub(super) warning: Option<String>,
    pub(super) state: CallState,
    pub(super) started: Option<Moment>,
    pub(super) timeout: Duration,
    pub(super) transaction: Option<Transaction>,
    /// What it gave, before anything was added or cut; kept where equal results are looked for.
    pub(super) raw_result: Option<String>,
    /// Not for those who only see what a client may see.
    pub(super) is_hidden: bool,
    /// Somebody allowed it.
    pub(super) is_approved: bool,
    /// Its tool may come with a section that an earlier call of the turn reads.
    pub(super) is_early: bool,
    /// To call it was to pick it.
    pub(super) is_auto_picked: bool,
}

/// Who executes a call.
#[derive(Clone)]
pub(super) enum Who {
    Tool,
    Executor(Arc<dyn ToolExecutor>),
    Caller,
}

/// How far a call has come.
pub(super) enum CallState {
    Ready,
    /// Somebody allowed it.
    Approved,
    /// Somebody is being asked.
    Asking(String),
    /// Nobody could say: the run will wait.
    Suspended(String),
    Running,
    /// Its result is being put away.
    Spilling(Settled),
    /// There is a result, which the conversation does not have yet.
    Settled(Settled),
    /// The caller executes it.
    Pending,
    /// Its result is in the conversation.
    Recorded,
}

impl BatchCall {
    /// A call whose result is in the conversation already.
    pub(super) fn recorded(open: OpenCall, hydration: HydrationResult) -> Self {
        Self {
            item: open.item,
            record: open.record,
            hydration,
            definition: None,
            who: Who::Tool,
            is_barrier: false,
            warning: None,
            state: CallState::Recorded,
            started: None,
            timeout: Duration::ZERO,
            transaction: None,
            raw_result: None,
            is_hidden: open.hidden,
            is_approved: false,
            is_early: false,
            is_auto_picked: false,
        }
    }

    /// How far it has come, for another process that goes on with it.
    pub(super) fn to_open(&self) -> OpenCall {
        let state = match &self.state {
            CallState::Running => OpenState::Begun {
                approved: self.is_approved,
            },
            CallState::Settled(settled) => settled.to_open(),
            CallState::Spilling(settled) => {
                let mut settled = settled.clone();
                settled.shorten();
                settled.to_open()
            }
            CallState::Recorded => OpenState::Answered,
            // Whoever was asked is asked again, and what the caller executes is handed over again.
            CallState::Ready
            | CallState::Approved
            | CallState::Asking(_)
            | CallState::Suspended(_)
            | CallState::Pending => OpenState::Held,
        };
        OpenCall {
            item: self.item.clone(),
            warning: self.warning.clone(),
            record: self.record,
            hidden: self.is_hidden,
            state,
        }
    }

    /// Its result waits until it is put away.
    pub(super) fn spill(&mut self) {
        self.state = match std::mem::replace(&mut self.state, CallState::Recorded) {
            // One that turned out not to have succeeded is not put away.
            CallState::Settled(settled) if !settled.is_error => CallState::Spilling(settled),
            other => other,
        };
    }

    /// Whether later calls need not wait for it. What the caller executes is not waited for.
    pub(super) fn is_past(&self) -> bool {
        matches!(
            self.state,
            CallState::Settled(_) | CallState::Pending | CallState::Recorded
        )
    }

    pub(super) fn is_busy(&self) -> bool {
        matches!(
            self.state,
            CallState::Running | CallState::Asking(_) | CallState::Spilling(_)
        )
    }

    pub(super) fn is_forbidden(&self) -> bool {
        is_forbidden(&self.hydration)
    }

    /// The arguments that would run.
    pub(super) fn arguments(&self) -> Value {
        let provenance = &self.hydration.provenance;
        let checked = provenance.validated.as_ref().or(provenance.parsed.as_ref());
        checked.cloned().unwrap_or_default()
    }

    pub(super) fn question(&self, reason: &str) -> Option<ApprovalRequest> {
        Some(ApprovalRequest {
            call_id: self.item.call_id.clone(),
            definition: Arc::clone(self.definition.as_ref()?),
            arguments: self.arguments(),
            reason: reason.to_owned(),
        })
    }
}

/// What becomes of calls that are not settled when a turn breaks off.
#[derive(Clone, Copy)]
pub(super) struct Unsettled {
    /// Why those that have not begun will not.
    pub(super) waiting: NotExecuted,
    /// How those that were running ended.
    pub(super) running: CallStatus,
}

impl Machine {
    /// Executes the calls of an answer.
    pub(super) fn begin_batch(&mut self, response: ModelResponse) {
        let reports = self.detect_loops(&response);
        let only = self.only_call(&response);
        let loaded = match terminating(&reports) {
            Some(_) => Vec::new(),
            None => self.load_called(&response, only),
        };
        let mut batch = self.take_calls(response, &reports);
        self.note_loaded(&batch, &loaded);
        if let Some(report) = terminating(&reports) {
            self.settle_all(&mut batch, not_executed(NotExecuted::LoopDetected));
            self.record_outputs(&mut batch);
            self.tell_results(&batch);
            return self.end_loop(report);
        }
        let mut is_reading = false;
        for (at, call) in batch.calls.iter_mut().enumerate() {
            if only.is_some_and(|only| only != at) {
                self.settle_unexecuted(call, NotExecuted::OneAtATime);
            } else {
                self.settle_refused_or_wait(call, &mut is_reading);
            }
        }
        self.advance(batch);
    }

    /// Which call is taken where only one may be: the one that is demanded, or the first. None where
    /// all are.
    fn only_call(&mut self, response: &ModelResponse) -> Option<usize> {
        if self.environment.parallel_tool_calls != Some(false) {
            return None;
        }
        let Some(ToolChoice::Function(demanded)) = self.choice() else {
            return Some(0);
        };
        let mut calls = response.items.iter().filter_map(|item| match item {
            Item::FunctionCall(call) => Some(call),
            _ => None,
        });
        Some(calls.position(|call| call.name == demanded).unwrap_or(0))
    }

    /// Keeps an answer whose calls are not executed, with a result for each.
    pub(super) fn keep_unexecuted(&mut self, response: ModelResponse, why: NotExecuted) {
        let mut batch = self.take_calls(response, &[]);
        self.settle_all(&mut batch, not_executed(why));
        self.record_outputs(&mut batch);
        self.tell_results(&batch);
    }

    /// The whole batch is looked at before anything of it runs.
    fn detect_loops(&mut self, response: &ModelResponse) -> Vec<Option<LoopReport>> {
        let mut reports = Vec::new();
        for item in &response.items {
            let Item::FunctionCall(call) = item else {
                continue;
            };
            let arguments = RawArguments::Text(call.arguments.clone());
            let mut report = self.progress().detector.check(&call.name, &arguments);
            if let Some(report) = &mut report {
                self.decide(report);
            }
            reports.push(report);
        }
        reports
    }

    /// Lets the host's callback change what is done about a loop.
    pub(super) fn decide(&mut self, report: &mut LoopReport) {
        if let Some(callback) = &self.environment.on_loop
            && let Ok(action) = haft_core::caught(|| callback(report))
        {
            report.action = action;
        }
    }

    /// Makes an answer part of the conversation and its calls a batch: hydrated, recorded, with
    /// ids of their own.
    fn take_calls(&mut self, response: ModelResponse, reports: &[Option<LoopReport>]) -> Batch {
        self.note_words(&response);
        let source = source_of(&*self.environment.model, &response);
        let last = response.items.len().saturating_sub(1);
        let only = self.only_call(&response);
        let mut batch = Batch::default();
        let mut requested = Vec::new();
        for (at, item) in response.items.into_iter().enumerate() {
            let Item::FunctionCall(mut item) = item else {
                self.add_item(item);
                continue;
            };
            let finish = finish_of(&item, at == last, response.finish);
            let mut call = as_tool_call(&item, finish, &source);
            let report = reports.get(batch.calls.len()).and_then(Option::as_ref);
            // It got its id when it began.
            self.session.call_ids.release(&item.call_id);
            let binding = self.binding();
            let hydrated = self.hydrate(&call, &binding);
            item.call_id.clone_from(&hydrated.provenance.call_id);
            call.call_id = Some(item.call_id.clone());
            let is_left_out = only.is_some_and(|only| only != batch.calls.len());
            let is_held = binding.is_held(&item.name);
            let hidden = is_left_out || is_held || is_forbidden(&hydrated);
            self.add(Item::FunctionCall(item.clone()), hidden);
            if let Some(report) = report {
                self.tell_loop(report, &item.call_id);
            }
            let mut call_of_batch = self.batch_call(item, hydrated, &binding, None);
            call_of_batch.is_hidden = hidden;
            call_of_batch.warning = report
                .filter(|report| report.action == LoopAction::Warn)
                .map(LoopReport::warning);
            batch.calls.push(call_of_batch);
            requested.push(call);
        }
        if !requested.is_empty() {
            self.emit(EventKind::ToolCallsRequested { calls: requested });
        }
        batch
    }

    pub(super) fn hydrate(&mut self, call: &ToolCall, binding: &Binding) -> HydrationResult {
        let hydrator = &self.environment.hydrator;
        hydrator.hydrate(call, binding, &mut self.session.call_ids)
    }

    pub(super) fn tell_loop(&mut self, report: &LoopReport, call_id: &str) {
        self.emit(EventKind::LoopDetected {
            kind: report.kind.clone(),
            count: report.count(),
            action: report.action,
            call_id: call_id.to_owned(),
        });
    }

    /// A call with everything that is known about it before it starts. `record` is its place in the
    /// records, if it has one already.
    pub(super) fn batch_call(
        &mut self,
        item: FunctionCall,
        hydration: HydrationResult,
        binding: &Binding,
        record: Option<usize>,
    ) -> BatchCall {
        let environment = Arc::clone(&self.environment);
        let tool = binding.admit(&item.name).ok();
        let definition = tool.map(|tool| Arc::clone(tool.definition()));
        let who = tool.map_or(Who::Tool, |tool| {
            match environment.executors.find(tool.definition()) {
                _ if tool.tool().runs_here() => Who::Tool,
                Some(executor) => Who::Executor(Arc::clone(executor)),
                None => Who::Caller,
            }
        });
        let is_barrier = definition.as_deref().is_some_and(|definition| {
            let policies = environment.policies_for(definition);
            definition.annotations().sequential
                || policies
                    .iter()
                    .any(|policy| has_memory(&**policy, definition))
        });
        let own_timeout = definition
            .as_ref()
            .and_then(|definition| definition.annotations().timeout_ms);
        let record = record.unwrap_or_else(|| {
            let kind = definition.as_ref().map(|definition| definition.kind());
            self.new_record(&item, &hydration, kind.cloned())
        });
        BatchCall {
            item,
            record,
            definition,
            who,
            is_barrier,
            warning: None,
            state: CallState::Ready,
            started: None,
            timeout: environment.options.timeout_of(own_timeout),
            transaction: None,
            raw_result: None,
            is_hidden: false,
            is_approved: false,
            is_early: false,
            is_auto_picked: false,
            hydration,
        }
    }

    /// Answers a call that did not become a tool with what was wrong, unless the caller wants it so.
    pub(super) fn settle_refused(&mut self, call: &mut BatchCall) {
        let Some(text) = call.hydration.text_for_model() else {
            return;
        };
        if matches!(call.who, Who::Caller) && self.environment.hands_over_refused {
            call.state = CallState::Pending;
            return self.set_status(call, CallStatus::Pending);
        }
        let first = call.hydration.errors.first();
        let status = match first.map(|error| &error.detail) {
            Some(ErrorCode::UnknownTool { .. } | ErrorCode::NotAllowed { .. }) => {
                CallStatus::Unknown
            }
            _ => CallStatus::Refused,
        };
        let hint = (status == CallStatus::Refused).then(|| self.pick_hint(&call.item.name));
        let text = text + &hint.flatten().unwrap_or_default();
        self.settle(call, Settled::error(status, text));
    }

    pub(super) fn new_record(
        &mut self,
        item: &FunctionCall,
        hydration: &HydrationResult,
        kind: Option<ToolKind>,
    ) -> usize {
        let progress = self.progress();
        progress.records.push(CallRecord {
            call_id: item.call_id.clone(),
            tool_name: item.name.clone(),
            kind,
            round: progress.rounds + 1,
            provenance: hydration.provenance.clone(),
            errors: hydration.errors.clone(),
            verdict: None,
            status: CallStatus::NotExecuted,
            result: None,
            value: None,
            output_mismatch: false,
            loaded_by_call: false,
            duration_ms: 0,
        });
        progress.records.len() - 1
    }

    pub(super) fn note_verdict(&mut self, call: &BatchCall, words: String) {
        if let Some(record) = self.progress().records.get_mut(call.record) {
            record.verdict = Some(words);
        }
    }

    pub(super) fn set_status(&mut self, call: &BatchCall, status: CallStatus) {
        if let Some(record) = self.progress().records.get_mut(call.record) {
            record.status = status;
        }
    }

    pub(super) fn settle_unexecuted(&mut self, call: &mut BatchCall, why: NotExecuted) {
        // A warning belongs to a result, and there is none.
        call.warning = None;
        self.settle(call, Settled::error(CallStatus::NotExecuted, why.text()));
    }

    /// Gives every unsettled call a result. Says whether one of them was running.
    pub(super) fn settle_all(&mut self, batch: &mut Batch, how: Unsettled) -> bool {
        let mut was_running = false;
        for call in &mut batch.calls {
            match std::mem::replace(&mut call.state, CallState::Ready) {
                CallState::Running => {
                    was_running = true;
                    let text = match how.running {
                        CallStatus::TimedOut => texts::timed_out(&call.item.name, call.timeout),
                        _ => texts::stopped(&call.item.name),
                    };
                    self.settle(call, Settled::error(how.running, text));
                }
                // It ran; only the putting away was not waited for.
                CallState::Spilling(mut settled) => {
                    settled.shorten();
                    call.state = CallState::Settled(settled);
                }
                settled @ (CallState::Settled(_) | CallState::Recorded) => call.state = settled,
                _ => self.settle_unexecuted(call, how.waiting),
            }
        }
        was_running
    }
}

/// One that panics over the question is taken to have some: then nothing runs beside its calls.
fn has_memory(policy: &dyn Policy, definition: &ToolDefinition) -> bool {
    haft_core::caught(|| policy.has_memory(definition)).unwrap_or(true)
}

/// Whether the request offers the tool and does not allow it to be called.
fn is_forbidden(hydration: &HydrationResult) -> bool {
    let first = hydration.errors.first();
    first.is_some_and(|error| matches!(error.detail, ErrorCode::NotAllowed { .. }))
}

fn not_executed(why: NotExecuted) -> Unsettled {
    Unsettled {
        waiting: why,
        running: CallStatus::Stopped,
    }
}

fn terminating(reports: &[Option<LoopReport>]) -> Option<&LoopReport> {
    reports
        .iter()
        .flatten()
        .find(|report| report.action == LoopAction::Terminate)
}

//! The calls of one answer: what they are, and which of them may start.

use std::sync::Arc;
use std::time::Duration;

use haft_core::{
    Access, ApprovalRequest, CallSource, Decision, ErrorCode, FinishReason, FunctionCall,
    HydrationResult, Item, ItemStatus, ModelResponse, PolicyCall, RawArguments, ToolCall,
    ToolDefinition, ToolKind, Transaction, Verdict,
};
use serde_json::Value;

use crate::event::EventKind;
use crate::executor::{ExecutorCall, ToolExecutor};
use crate::loop_report::{LoopAction, LoopReport};
use crate::moment::Moment;
use crate::outcome::{CallRecord, CallStatus, IncompleteReason};
use crate::policies::check_all;
use crate::session::OpenCall;
use crate::texts::{self, NotExecuted};

use super::effect::{Effect, Runner, Ticket};
use super::settle::Settled;
use super::{Machine, Phase};

/// How much of a provider's call object is kept in the record.
const MAX_CHUNK_BYTES: usize = 64 * 1024;

/// The calls of one answer, in order.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) calls: Vec<BatchCall>,
    /// Calls were left out because the call limit was reached.
    pub(super) call_limit_hit: bool,
}

/// One of them.
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
        }
    }

    /// Whether later calls need not wait for it. What the caller executes is not waited for.
    fn is_past(&self) -> bool {
        matches!(
            self.state,
            CallState::Settled(_) | CallState::Pending | CallState::Recorded
        )
    }

    fn is_busy(&self) -> bool {
        matches!(
            self.state,
            CallState::Running | CallState::Asking(_) | CallState::Spilling(_)
        )
    }

    pub(super) fn is_forbidden(&self) -> bool {
        let first = self.hydration.errors.first();
        first.is_some_and(|error| matches!(error.detail, ErrorCode::NotAllowed { .. }))
    }

    /// The arguments that would run.
    fn arguments(&self) -> Value {
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
        let mut batch = self.take_calls(response, &reports);
        if let Some(report) = terminating(&reports) {
            let message = format!("Loop detected: {}", report.sentence());
            self.settle_all(&mut batch, not_executed(NotExecuted::LoopDetected));
            self.record_outputs(&mut batch);
            return self.end_incomplete(IncompleteReason::LoopDetected, message);
        }
        if self.environment.parallel_tool_calls == Some(false) {
            let rest = batch.calls.iter_mut().skip(1);
            for call in rest.filter(|call| !call.is_past()) {
                self.settle_unexecuted(call, NotExecuted::OneAtATime);
            }
        }
        self.advance(batch);
    }

    /// Keeps an answer whose calls are not executed, with a result for each.
    pub(super) fn keep_unexecuted(&mut self, response: ModelResponse, why: NotExecuted) {
        let mut batch = self.take_calls(response, &[]);
        self.settle_all(&mut batch, not_executed(why));
        self.record_outputs(&mut batch);
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
        let source = CallSource {
            provider: self.environment.model.provider().to_owned(),
            model: match &response.model {
                Some(model) => model.clone(),
                None => self.environment.model.name().to_owned(),
            },
            response_id: response.response_id.clone(),
            ..CallSource::default()
        };
        let last = response.items.len().saturating_sub(1);
        let mut batch = Batch::default();
        let mut requested = Vec::new();
        for (at, item) in response.items.into_iter().enumerate() {
            let Item::FunctionCall(mut item) = item else {
                self.add_item(item);
                continue;
            };
            // The limit can only have fallen into what the model wrote last.
            let finish = match item.status {
                Some(ItemStatus::Incomplete) => FinishReason::Length,
                _ if at == last => response.finish,
                _ => FinishReason::Normal,
            };
            let mut call = as_tool_call(&item, finish, &source);
            let report = reports.get(batch.calls.len()).and_then(Option::as_ref);
            let hydrated = self.hydrate(&call);
            item.call_id.clone_from(&hydrated.provenance.call_id);
            call.call_id = Some(item.call_id.clone());
            self.add_item(Item::FunctionCall(item.clone()));
            if let Some(report) = report {
                self.tell_loop(report, &item.call_id);
            }
            let mut call_of_batch = self.batch_call(item, hydrated, None);
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

    pub(super) fn hydrate(&mut self, call: &ToolCall) -> HydrationResult {
        let environment = Arc::clone(&self.environment);
        environment
            .hydrator
            .hydrate(call, &environment.binding, &mut self.session.call_ids)
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
        record: Option<usize>,
    ) -> BatchCall {
        let environment = Arc::clone(&self.environment);
        let definition = environment
            .binding
            .admit(&item.name)
            .ok()
            .map(|tool| Arc::clone(tool.definition()));
        let who = definition.as_deref().map_or(Who::Tool, |definition| {
            match environment.executors.find(definition) {
                _ if *definition.kind() != ToolKind::Function => Who::Tool,
                Some(executor) => Who::Executor(Arc::clone(executor)),
                None => Who::Caller,
            }
        });
        let is_barrier = definition.as_deref().is_some_and(|definition| {
            let policies = &environment.policies;
            definition.annotations().sequential
                || policies.iter().any(|policy| policy.has_memory(definition))
        });
        let own_timeout = definition
            .as_ref()
            .and_then(|definition| definition.annotations().timeout_ms);
        let record = record.unwrap_or_else(|| {
            let kind = definition.as_ref().map(|definition| definition.kind());
            self.new_record(&item, &hydration, kind.cloned())
        });
        let mut call = BatchCall {
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
            hydration,
        };
        if let Some(text) = call.hydration.text_for_model() {
            let first = call.hydration.errors.first();
            let status = match first.map(|error| &error.detail) {
                Some(ErrorCode::UnknownTool { .. } | ErrorCode::NotAllowed { .. }) => {
                    CallStatus::Unknown
                }
                _ => CallStatus::Refused,
            };
            self.settle(&mut call, Settled::error(status, text));
        }
        call
    }

    fn new_record(
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
            duration_ms: 0,
        });
        progress.records.len() - 1
    }

    /// Starts whatever may start, and closes the turn when nothing is left to wait for here.
    pub(super) fn advance(&mut self, mut batch: Batch) {
        for at in 0..batch.calls.len() {
            let running = batch.calls.iter().filter(|call| call.is_busy()).count();
            let is_first_open = batch.calls[..at].iter().all(BatchCall::is_past);
            let call = &mut batch.calls[at];
            if matches!(call.state, CallState::Ready | CallState::Approved) {
                if running >= self.environment.options.max_parallel.max(1)
                    || (call.is_barrier && !is_first_open)
                {
                    break;
                }
                if self.start_call(call, at) == Started::LimitReached {
                    batch.call_limit_hit = true;
                }
            }
            let call = &batch.calls[at];
            if call.is_barrier && !call.is_past() {
                break;
            }
        }
        if batch.calls.iter().any(BatchCall::is_busy) {
            self.phase = Phase::Executing(batch);
        } else {
            self.close_turn(batch);
        }
    }

    /// The checks of one call, in their order, and its start if it passes them.
    fn start_call(&mut self, call: &mut BatchCall, at: usize) -> Started {
        let Some(definition) = call.definition.clone() else {
            return Started::Done;
        };
        let for_caller = matches!(call.who, Who::Caller);
        if !for_caller && self.call_limit_reached() {
            self.settle_unexecuted(call, NotExecuted::CallLimit);
            return Started::LimitReached;
        }
        let policy_call = PolicyCall {
            hydration: &call.hydration,
            definition: &definition,
        };
        let environment = Arc::clone(&self.environment);
        let verdict = check_all(&environment.policies, &policy_call, &environment.state);
        match verdict {
            Verdict::Deny(reason) => {
                self.note_verdict(call, format!("denied: {reason}"));
                self.settle(call, Settled::error(CallStatus::Denied, reason));
                Started::Done
            }
            // What the caller executes is the caller's to approve; the record says what it is worth.
            _ if for_caller => {
                call.state = CallState::Pending;
                self.set_status(call, CallStatus::Pending);
                Started::Done
            }
            Verdict::NeedApproval(reason) if !matches!(call.state, CallState::Approved) => {
                self.ask(call, at, reason);
                Started::Done
            }
            Verdict::NeedApproval(_) => self.run_call(call, at, Access::Full),
            Verdict::Allow(access) => self.run_call(call, at, access),
        }
    }

    fn ask(&mut self, call: &mut BatchCall, at: usize, reason: String) {
        let question = call
            .question(&reason)
            .filter(|_| self.environment.has_approver);
        let Some(question) = question else {
            return self.refuse(call, None);
        };
        self.emit(EventKind::ApprovalRequested {
            tool_name: call.item.name.clone(),
            call_id: call.item.call_id.clone(),
            reason: reason.clone(),
        });
        self.effects.push_back(Effect::Ask {
            call: at,
            question: Box::new(question),
            timeout: Duration::from_millis(self.environment.options.approval_timeout_ms),
        });
        call.state = CallState::Asking(reason);
    }

    /// Nobody approved the call.
    pub(super) fn refuse(&mut self, call: &mut BatchCall, reason: Option<&str>) {
        let words = reason.map_or_else(
            || "not approved".into(),
            |why| format!("not approved: {why}"),
        );
        self.note_verdict(call, words);
        let text = texts::not_approved(&call.item.name, reason);
        self.settle(call, Settled::error(CallStatus::NotApproved, text));
    }

    fn run_call(&mut self, call: &mut BatchCall, at: usize, access: Access) -> Started {
        let runner = match (&call.who, call.hydration.tool.take()) {
            (Who::Executor(executor), _) => Runner::Executor(
                Arc::clone(executor),
                ExecutorCall {
                    call_id: call.item.call_id.clone(),
                    name: call.item.name.clone(),
                    arguments: call.arguments(),
                },
            ),
            (_, Some(tool)) => Runner::Tool(tool),
            // Hydrated calls have their tool until somebody takes it, and nobody else does.
            (_, None) => return Started::Done,
        };
        self.progress().calls_executed += 1;
        let transaction = self
            .environment
            .state
            .begin(&call.item.call_id, &call.item.name);
        call.transaction = Some(transaction.clone());
        call.started = Some(self.now);
        call.state = CallState::Running;
        if let Some(deadline) = self.environment.deadline {
            call.timeout = call.timeout.min(deadline.since(self.now));
        }
        self.emit(EventKind::ToolStarted {
            tool_name: call.item.name.clone(),
            call_id: call.item.call_id.clone(),
        });
        self.effects.push_back(Effect::Run(Ticket {
            call: at,
            call_id: call.item.call_id.clone(),
            tool_name: call.item.name.clone(),
            runner,
            access,
            timeout: call.timeout,
            transaction,
        }));
        Started::Done
    }

    /// Somebody decided about a call.
    pub(super) fn call_answered(&mut self, at: usize, decision: Decision) {
        let Phase::Executing(batch) = &mut self.phase else {
            return;
        };
        let mut batch = std::mem::take(batch);
        if let Some(call) = batch.calls.get_mut(at)
            && let CallState::Asking(reason) = &call.state
        {
            let reason = reason.clone();
            match decision {
                Decision::Allow => {
                    self.note_verdict(call, "approved".into());
                    call.state = CallState::Approved;
                }
                Decision::Deny(why) => self.refuse(call, why.as_deref()),
                Decision::Suspend => {
                    call.state = CallState::Suspended(reason);
                    self.set_status(call, CallStatus::Suspended);
                }
            }
        }
        self.advance(batch);
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
                CallState::Spilling(settled) => call.state = CallState::Settled(settled),
                settled @ (CallState::Settled(_) | CallState::Recorded) => call.state = settled,
                _ => self.settle_unexecuted(call, how.waiting),
            }
        }
        was_running
    }
}

#[derive(PartialEq, Eq)]
enum Started {
    Done,
    LimitReached,
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

fn as_tool_call(item: &FunctionCall, finish: FinishReason, source: &CallSource) -> ToolCall {
    let mut chunk = serde_json::to_string(item).unwrap_or_default();
    chunk.truncate(chunk.floor_char_boundary(MAX_CHUNK_BYTES));
    ToolCall {
        name: item.name.clone(),
        call_id: Some(item.call_id.clone()),
        arguments: RawArguments::Text(item.arguments.clone()),
        finish,
        source: Some(CallSource {
            chunk: Some(chunk),
            recovered: item.extra.get("recovered") == Some(&Value::Bool(true)),
            ..source.clone()
        }),
    }
}

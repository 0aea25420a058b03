//! One run under watch: from its events come metrics, spans and the record of how it went.
//!
//! A piece of an answer costs a comparison here; everything else happens a few times per turn.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use haft_core::{CallOutput, ContentPart, FinishReason, Item, Model, Owner, Usage};
use haft_engine::{CallStatus, End, EventKind, FailedReason, Outcome, RunEvent};
use serde_json::value::{RawValue, to_raw_value};

use super::metrics::{
    CallLabels, KindLabels, ModelMeters, Name, OutcomeLabels, RunLabels, Word, error_word,
};
use super::record::{
    AttemptTrace, CallTrace, HydrationTrace, Note, NoteKind, RunTrace, TurnTrace, trust_word,
};
use super::request::RequestWatch;
use super::{Watch, epoch_seconds};
use crate::compaction::{Carried, Halt};
use crate::error::ApiError;
use crate::stream::Shown;

/// So many calls are written down for one run.
const MAX_CALLS: usize = 2048;

/// What each tool of a run is for the client, by the name that the model calls it by.
pub(crate) type Tools = HashMap<String, Shown>;

/// Who asks for a run, and for what.
pub(crate) struct Commission<'c> {
    pub(crate) owner: &'c Owner,
    pub(crate) response_id: &'c str,
    pub(crate) request_id: &'c str,
    /// The model by the name that requests use.
    pub(crate) model_name: &'c str,
    pub(crate) model: &'c dyn Model,
    pub(crate) conversation: Option<&'c str>,
    pub(crate) is_background: bool,
    pub(crate) is_stored: bool,
}

/// One run under watch.
pub(crate) struct RunWatch {
    watch: Arc<Watch>,
    request: RequestWatch,
    model: Arc<ModelMeters>,
    trace: Arc<Mutex<RunTrace>>,
    /// Under which the record of a background run can be found while it goes on.
    found_by: Option<(Owner, String)>,
    created: Instant,
    started_at: f64,
    stage: Stage,
    /// Whether the run's first piece of an answer has yet to come, and the turn's.
    awaits_first: bool,
    awaits_turn: bool,
    /// Whether the answer of this turn calls something.
    calls: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Made,
    Begun,
    Ended,
}

impl RunWatch {
    pub(super) fn new(
        watch: &Arc<Watch>,
        request: RequestWatch,
        for_whom: &Commission<'_>,
    ) -> Self {
        let started_at = epoch_seconds();
        let trace = RunTrace {
            object: "response.trace".to_owned(),
            response_id: for_whom.response_id.to_owned(),
            request_id: for_whom.request_id.to_owned(),
            model: for_whom.model_name.to_owned(),
            started_at: (started_at * 1000.0).round() / 1000.0,
            ..RunTrace::default()
        };
        let found_by = (for_whom.owner.clone(), for_whom.response_id.to_owned());
        Self {
            model: watch.metrics.model(for_whom.model_name),
            watch: Arc::clone(watch),
            request,
            trace: Arc::new(Mutex::new(trace)),
            found_by: for_whom.is_background.then_some(found_by),
            created: Instant::now(),
            started_at,
            stage: Stage::Made,
            awaits_first: true,
            awaits_turn: false,
            calls: false,
        }
    }

    /// The run begins.
    pub(crate) fn begin(&mut self) {
        if self.stage != Stage::Made {
            return;
        }
        self.stage = Stage::Begun;
        let meters = &self.watch.metrics.meters;
        meters.active_runs.inc();
        if let Some(key) = &self.found_by {
            meters.background_runs.inc();
            self.watch.live.insert(key.clone(), Arc::clone(&self.trace));
        }
    }

    /// The run of a response that another process began, with what it wrote down of it.
    pub(crate) fn resumed(&mut self, response_id: &str, earlier: Option<RunTrace>) {
        if let Some(earlier) = earlier {
            // Times go on counting from its first beginning.
            self.started_at = earlier.started_at;
            *self.trace() = earlier;
        }
        response_id.clone_into(&mut self.trace().response_id);
        if let Some((_, id)) = &mut self.found_by {
            response_id.clone_into(id);
        }
        self.note(NoteKind::Resumed);
    }

    /// The run is left for another process to go on with.
    pub(crate) fn put_away(&mut self) {
        if self.stage == Stage::Begun {
            self.close("put_away", None);
        }
    }

    /// Takes an event in.
    pub(crate) fn hear(&mut self, event: &RunEvent, tools: &Tools) {
        match &event.kind {
            EventKind::TextDelta { .. }
            | EventKind::RefusalDelta { .. }
            | EventKind::ReasoningDelta { .. }
            | EventKind::SummaryDelta { .. }
            | EventKind::ArgumentsDelta { .. } => {
                if self.awaits_turn {
                    self.first_token(event.timestamp);
                }
            }
            EventKind::ItemFinished {
                item: Item::FunctionCall(_),
                ..
            } => self.calls = true,
            EventKind::TurnStarted { .. } => self.turn_started(event),
            EventKind::RequestRetried {
                error_kind,
                delay_ms,
                ..
            } => {
                self.model.retried(*error_kind);
                let error = error_word(*error_kind);
                self.close_attempt(event.timestamp, Some(error), Some(*delay_ms));
            }
            EventKind::AnswerFinished {
                finish,
                usage,
                model,
                ..
            } => self.answered(event.timestamp, *finish, usage.as_ref(), model.as_deref()),
            EventKind::AnswerDiscarded { .. } => {
                if let Some(turn) = self.trace().turns.last_mut() {
                    turn.discarded = true;
                }
            }
            EventKind::ToolCallsRequested { calls } => {
                let calls = calls.iter().map(|call| CallTrace {
                    call_id: call.call_id.clone().unwrap_or_default(),
                    name: call.name.clone(),
                    kind: kind_of(tools.get(&call.name)).to_owned(),
                    ..CallTrace::default()
                });
                self.calls_requested(calls.collect());
            }
            EventKind::ToolStarted { call_id, .. } => {
                let at = self.ms(event.timestamp);
                self.with_call(call_id, |call| call.start_ms = Some(at));
            }
            EventKind::ToolInvoked {
                tool_name,
                call_id,
                error_kind,
                duration_ms,
                output,
                ..
            } => {
                let ended = CallEnd {
                    call_id,
                    kind: kind_of(tools.get(tool_name)),
                    outcome: error_kind.unwrap_or("succeeded"),
                    // Events are told when they are read; the duration is the engine's own.
                    milliseconds: *duration_ms,
                    at: event.timestamp,
                    output_bytes: bytes_of(output),
                };
                self.call_ended(&ended);
            }
            _ => {}
        }
    }

    fn turn_started(&mut self, event: &RunEvent) {
        self.model.requests.inc();
        self.awaits_turn = true;
        self.calls = false;
        let start_ms = self.ms(event.timestamp);
        let mut trace = self.trace();
        trace.usage.requests += 1;
        let attempt = AttemptTrace {
            start_ms,
            ..AttemptTrace::default()
        };
        match trace.turns.last_mut() {
            Some(turn) if event.attempt > 1 => turn.attempts.push(attempt),
            _ => trace.turns.push(TurnTrace {
                start_ms,
                attempts: vec![attempt],
                ..TurnTrace::default()
            }),
        }
    }

    fn first_token(&mut self, timestamp: f64) {
        self.awaits_turn = false;
        if std::mem::take(&mut self.awaits_first) {
            let waited = self.created.elapsed();
            self.model.first_token.observe(waited.as_secs_f64());
        }
        let at = self.ms(timestamp);
        if let Some(turn) = self.trace().turns.last_mut() {
            turn.first_token_ms = Some(at);
        }
    }

    fn answered(
        &mut self,
        timestamp: f64,
        finish: FinishReason,
        usage: Option<&Usage>,
        model: Option<&str>,
    ) {
        self.model.turns.inc();
        let finish = finish_word(finish, self.calls);
        if let Some(usage) = usage {
            self.model.used(usage);
        }
        {
            let mut trace = self.trace();
            if let Some(usage) = usage {
                let requests = trace.usage.requests;
                trace.usage += *usage;
                trace.usage.requests = requests;
            }
            if let Some(turn) = trace.turns.last_mut() {
                turn.finish = Some(finish.to_owned());
                turn.model = model.map(haft_core::cut);
                turn.usage = usage.copied();
            }
        }
        self.close_attempt(timestamp, None, None);
    }

    /// A request to the model is over, well or badly.
    fn close_attempt(&mut self, timestamp: f64, error: Option<Word>, delay_ms: Option<u64>) {
        let at = self.ms(timestamp);
        self.awaits_turn = false;
        let mut trace = self.trace();
        let Some(turn) = trace.turns.last_mut() else {
            return;
        };
        if delay_ms.is_none() {
            turn.end_ms = Some(at);
        }
        if let Some(attempt) = turn.attempts.last_mut() {
            attempt.end_ms = Some(at);
            attempt.error = error.map(str::to_owned);
            attempt.delay_ms = delay_ms;
        }
    }

    fn calls_requested(&mut self, mut calls: Vec<CallTrace>) {
        let mut trace = self.trace();
        let known: usize = trace.turns.iter().map(|turn| turn.calls.len()).sum();
        let room = MAX_CALLS.saturating_sub(known);
        trace.calls_omitted += calls.len().saturating_sub(room) as u64;
        calls.truncate(room);
        if let Some(turn) = trace.turns.last_mut() {
            turn.calls.extend(calls);
        }
    }

    fn call_ended(&mut self, ended: &CallEnd<'_>) {
        let meters = &self.watch.metrics.meters;
        let kind = Name::from(ended.kind);
        let mut has_run = false;
        let milliseconds = ended.milliseconds;
        self.with_call(ended.call_id, |call| {
            call.outcome = Some(ended.outcome.to_owned());
            call.output_bytes = Some(ended.output_bytes);
            has_run = call.start_ms.is_some();
            if has_run {
                #[allow(clippy::cast_precision_loss, reason = "no call lasts so long")]
                let duration = milliseconds as f64;
                call.duration_ms = Some(duration);
            }
        });
        if has_run {
            let labels = KindLabels { kind: kind.clone() };
            let seconds = std::time::Duration::from_millis(milliseconds).as_secs_f64();
            meters.tool_seconds.get_or_create(&labels).observe(seconds);
        }
        let labels = CallLabels {
            kind,
            outcome: ended.outcome,
        };
        meters.tool_calls.get_or_create(&labels).inc();
    }

    /// The context is being summed up; to be told how that ended.
    pub(crate) fn compacting(&self) -> Compacting {
        Compacting {
            started: epoch_seconds(),
        }
    }

    /// The context was summed up, or could not be.
    pub(crate) fn compacted(&mut self, begun: &Compacting, carried: &Result<Carried, Halt>) {
        let (outcome, usage) = self
            .watch
            .compacted(&self.model, carried.as_ref().map(|it| it.usage));
        let at_ms = self.ms(begun.started);
        let duration_ms = self.ms(epoch_seconds()) - at_ms;
        let mut trace = self.trace();
        trace.usage += usage;
        trace.notes.push(Note {
            at_ms,
            kind: NoteKind::Compaction {
                duration_ms: rounded(duration_ms),
                outcome: outcome.to_owned(),
                usage,
            },
        });
    }

    /// The context is cut, and the model asked again.
    pub(crate) fn shortened(&mut self) {
        self.watch.metrics.meters.truncations.inc();
        self.note(NoteKind::Truncation);
    }

    fn note(&mut self, kind: NoteKind) {
        let at_ms = self.ms(epoch_seconds());
        self.trace().notes.push(Note { at_ms, kind });
    }

    /// The engine has come to an end with it. There may be another beginning, with less context.
    pub(crate) fn leg(&mut self, outcome: &Outcome, tools: &Tools) {
        let now = epoch_seconds();
        match &outcome.end {
            End::Failed {
                reason: FailedReason::Model { error, .. },
                ..
            } => {
                self.model.failed(error.kind);
                self.give_up_attempt(now, error_word(error.kind));
            }
            End::Incomplete { .. } => self.give_up_attempt(now, "timeout"),
            End::Cancelled => self.give_up_attempt(now, "cancelled"),
            _ => {}
        }
        let meters = &self.watch.metrics.meters;
        let mut trace = self.trace();
        let calls = trace.turns.iter_mut().flat_map(|turn| &mut turn.calls);
        let mut open: HashMap<String, &mut CallTrace> = calls
            .filter(|call| call.hydration.is_none())
            .map(|call| (call.call_id.clone(), call))
            .collect();
        for record in &outcome.tool_calls {
            let Some(call) = open.get_mut(&record.call_id) else {
                continue;
            };
            let outcome = trust_word(record);
            meters
                .hydrations
                .get_or_create(&OutcomeLabels { outcome })
                .inc();
            call.hydration = Some(HydrationTrace::of(record));
            // Behind it stands a reason, in anybody's words.
            let verdict = record.verdict.as_deref();
            let verdict = verdict.and_then(|verdict| verdict.split(':').next());
            call.verdict = verdict.map(str::to_owned);
            let waiting = match record.status {
                CallStatus::Pending => "handed_over",
                CallStatus::Suspended => "suspended",
                _ => continue,
            };
            call.outcome = Some(waiting.to_owned());
            let labels = CallLabels {
                kind: Name::from(kind_of(tools.get(&record.tool_name))),
                outcome: waiting,
            };
            meters.tool_calls.get_or_create(&labels).inc();
        }
    }

    /// A request that nobody heard the end of is over.
    fn give_up_attempt(&mut self, now: f64, error: Word) {
        let is_open = {
            let trace = self.trace();
            let attempt = trace.turns.last().and_then(|turn| turn.attempts.last());
            attempt.is_some_and(|attempt| attempt.end_ms.is_none())
        };
        if is_open {
            self.close_attempt(now, Some(error), None);
        }
    }

    /// The run is over.
    pub(crate) fn ended(&mut self, ended: &Result<(End, Usage), ApiError>) {
        if self.stage != Stage::Begun {
            return;
        }
        let (outcome, reason) = match ended {
            Ok((end, _)) => (end.name(), end.summary().reason),
            Err(error) => ("failed", Some(error.code.as_str().to_owned())),
        };
        self.give_up_attempt(epoch_seconds(), "broken_off");
        self.close(outcome, reason);
    }

    fn close(&mut self, outcome: Word, reason: Option<String>) {
        self.stage = Stage::Ended;
        let meters = &self.watch.metrics.meters;
        meters.active_runs.dec();
        let labels = RunLabels {
            model: self.model.name.clone(),
            outcome,
        };
        meters.runs.get_or_create(&labels).inc();
        self.model.run.observe(self.created.elapsed().as_secs_f64());
        if self.found_by.is_some() {
            meters.background_runs.dec();
        }
        let duration = self.ms(epoch_seconds());
        let usage = {
            let mut trace = self.trace();
            trace.duration_ms = Some(duration);
            trace.outcome = Some(outcome.to_owned());
            trace.reason = reason;
            trace.usage
        };
        self.request.ran(&usage);
    }

    /// The record as it stands, to go on from.
    pub(crate) fn snapshot(&self) -> RunTrace {
        self.trace().clone()
    }

    /// The record as it stands, to be stored.
    pub(crate) fn to_json(&self) -> Option<Box<RawValue>> {
        to_raw_value(&*self.trace()).ok()
    }

    fn with_call(&self, call_id: &str, change: impl FnOnce(&mut CallTrace)) {
        let mut trace = self.trace();
        // The calls of the last turn are those that run.
        let turns = trace.turns.iter_mut().rev();
        let mut calls = turns.flat_map(|turn| turn.calls.iter_mut().rev());
        if let Some(call) = calls.find(|call| call.call_id == call_id) {
            change(call);
        }
    }

    fn trace(&self) -> MutexGuard<'_, RunTrace> {
        // What was written down stays true, whoever panicked.
        self.trace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds since the run's beginning.
    fn ms(&self, timestamp: f64) -> f64 {
        rounded((timestamp - self.started_at).max(0.0) * 1000.0)
    }
}

/// A run that goes away without an end was broken off. Its record is found here until it is stored.
impl Drop for RunWatch {
    fn drop(&mut self) {
        if self.stage == Stage::Begun {
            self.close("cancelled", None);
        }
        if let Some(key) = &self.found_by {
            self.watch.live.remove(key);
        }
    }
}

/// A compaction under way.
pub(crate) struct Compacting {
    started: f64,
}

struct CallEnd<'e> {
    call_id: &'e str,
    kind: &'e str,
    outcome: Word,
    milliseconds: u64,
    at: f64,
    output_bytes: u64,
}

/// Tenths of a millisecond are enough.
fn rounded(milliseconds: f64) -> f64 {
    (milliseconds * 10.0).round() / 10.0
}

/// What a tool is counted as. Names of the client's making are not among them.
fn kind_of(shown: Option<&Shown>) -> &str {
    match shown {
        Some(Shown::Function { .. }) => "function",
        Some(Shown::Custom { .. }) => "custom",
        Some(Shown::ToolSearch) => "tool_search",
        Some(Shown::Hosted { item_type }) => item_type,
        None => "unknown",
    }
}

fn finish_word(finish: FinishReason, calls: bool) -> Word {
    match finish {
        FinishReason::Normal if calls => "tool_calls",
        FinishReason::Normal => "stop",
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Error => "error",
        _ => "unknown",
    }
}

fn bytes_of(output: &CallOutput) -> u64 {
    let bytes = match output {
        CallOutput::Text(text) => text.len(),
        CallOutput::Parts(parts) => {
            let sizes = parts.iter().map(|part| match part {
                ContentPart::InputImage { image_url, .. } => image_url.len(),
                part => part.text().map_or(0, str::len),
            });
            sizes.sum()
        }
    };
    bytes as u64
}

//! One run under watch: from its events come metrics, spans and the record of how it went.
//!
//! A piece of an answer costs a comparison here; everything else happens a few times per turn.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::{
    CallOutput, ContentPart, Conversation, FinishReason, Item, Model, ModelResponse, Owner,
    ToolCall, Usage,
};
use haft_engine::{End, EventKind, FailedReason, Outcome, RunEvent};
use haft_models::pool::Witness;
use serde_json::value::RawValue;

use super::metrics::{
    CallLabels, KindLabels, ModelMeters, Name, OutcomeLabels, RunLabels, Word, absence_word,
    error_word,
};
use super::record::{CallTrace, NoteKind, RunTrace, trust_word};
use super::recorder::{Answer, Recorder, rounded};
use super::request::RequestWatch;
use super::spans::RunSpans;
use super::{McpCall, Watch, epoch_seconds};
use crate::compaction::{Carried, Halt};
use crate::error::ApiError;
use crate::stream::Shown;

/// What each tool of a run is for the client, by the name that the model calls it by.
pub(crate) type Tools = HashMap<String, Shown>;

/// Who asks for a run, and for what.
#[cfg_attr(
    not(feature = "otlp"),
    allow(dead_code, reason = "some of it is for spans only")
)]
pub(crate) struct Commission<'c> {
    pub(crate) owner: &'c Owner,
    pub(crate) response_id: &'c str,
    pub(crate) request_id: &'c str,
    /// The model by the name that requests use.
    pub(crate) model_name: &'c str,
    pub(crate) model: &'c dyn Model,
    pub(crate) witness: &'c Witness,
    pub(crate) conversation_id: Option<&'c str>,
    pub(crate) instructions: Option<&'c str>,
    pub(crate) conversation: &'c Conversation,
    pub(crate) is_background: bool,
    pub(crate) is_stored: bool,
}

/// One run under watch.
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts about one run"
)]
pub(crate) struct RunWatch {
    watch: Arc<Watch>,
    request: RequestWatch,
    model: Arc<ModelMeters>,
    /// Hears which backends failed.
    witness: Witness,
    recorder: Recorder,
    spans: RunSpans,
    /// Under which the record of a background run can be found while it goes on.
    found_by: Option<(Owner, String)>,
    owner: Owner,
    created: Instant,
    stage: Stage,
    /// Whether the run's first piece of an answer has yet to come, and the turn's.
    awaits_first: bool,
    awaits_turn: bool,
    /// Whether the answer of this turn calls something.
    calls: bool,
    /// Whether the request that the next turn begins with was noted when it was sent.
    has_asked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Made,
    Begun,
    Ended,
}

impl RunWatch {
    pub(super) fn new(watch: &Arc<Watch>, request: RequestWatch, run: &Commission<'_>) -> Self {
        let found_by = (run.owner.clone(), run.response_id.to_owned());
        Self {
            recorder: Recorder::new(run.response_id, run.request_id, run.model_name),
            spans: RunSpans::new(&watch.tracer, request.place(), run),
            model: watch.metrics.model(run.model_name),
            watch: Arc::clone(watch),
            request,
            witness: run.witness.clone(),
            found_by: run.is_background.then_some(found_by),
            owner: run.owner.clone(),
            created: Instant::now(),
            stage: Stage::Made,
            awaits_first: true,
            awaits_turn: false,
            calls: false,
            has_asked: false,
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
            self.watch.live.insert(key.clone(), self.recorder.shared());
        }
    }

    /// The run of a response that another process began, with what it wrote down of it.
    pub(crate) fn resumed(&mut self, response_id: &str, earlier: Option<RunTrace>) {
        self.recorder.resume(response_id, earlier);
        self.spans.resumed(response_id);
        if let Some((_, id)) = &mut self.found_by {
            response_id.clone_into(id);
        }
    }

    /// Takes an event in.
    pub(crate) fn hear(&mut self, event: &RunEvent, tools: &Tools) {
        let at = event.timestamp;
        match &event.kind {
            EventKind::TextDelta { .. }
            | EventKind::RefusalDelta { .. }
            | EventKind::ReasoningDelta { .. }
            | EventKind::SummaryDelta { .. }
            | EventKind::ArgumentsDelta { .. }
                if self.awaits_turn =>
            {
                self.first_token(at);
            }
            EventKind::AnswerStarted => self.note_failovers(),
            EventKind::ItemFinished { item, .. } => {
                self.calls |= matches!(item, Item::FunctionCall(_));
                self.spans.said(item);
            }
            EventKind::TurnStarted { .. } => self.turn_started(at, event.attempt > 1),
            EventKind::RequestRetried {
                error_kind,
                delay_ms,
                ..
            } => {
                self.model.retried(*error_kind);
                self.close_attempt(at, Some(error_word(*error_kind)), Some(*delay_ms));
            }
            EventKind::AnswerFinished {
                finish,
                usage,
                model,
                response_id,
            } => {
                let answer = Answer {
                    finish: finish_word(*finish, self.calls),
                    usage: usage.as_ref(),
                    model: model.as_deref(),
                };
                self.answer_finished(&answer, response_id.as_deref(), at);
            }
            EventKind::AnswerDiscarded { .. } => self.recorder.discarded(),
            EventKind::ToolCallsRequested { calls } => {
                self.spans.requested(calls);
                let calls = calls.iter().map(|call| requested(call, tools));
                self.recorder.calls_requested(calls.collect());
            }
            EventKind::RepeatedCallSuppressed {
                tool_name, call_id, ..
            } => {
                tracing::info!(
                    tool_name,
                    call_id,
                    "suppressed a repeated tool call; its result is already in the conversation"
                );
                let kind = kind_of(tools.get(tool_name));
                self.recorder.calls_requested(vec![CallTrace {
                    call_id: call_id.clone(),
                    name: tool_name.clone(),
                    kind: kind.to_owned(),
                    outcome: Some("suppressed".to_owned()),
                    ..CallTrace::default()
                }]);
                self.count_call(kind, "suppressed", None);
            }
            EventKind::ToolStarted { call_id, .. } => self.recorder.call_started(call_id, at),
            EventKind::ToolInvoked {
                tool_name,
                call_id,
                error_kind,
                output,
                duration_ms,
                ..
            } => {
                let outcome = error_kind.unwrap_or("succeeded");
                let bytes = bytes_of(output);
                let call = self.recorder.call_ended(call_id, at, outcome, bytes);
                let kind = kind_of(tools.get(tool_name));
                let ran = call.as_ref().is_some_and(|call| call.start_ms.is_some());
                let took = ran.then(|| Duration::from_millis(*duration_ms));
                self.count_call(kind, outcome, took);
                if let Some(Shown::Mcp { server_label, name }) = tools.get(tool_name) {
                    self.watch.mcp_called(&McpCall {
                        door: "responses",
                        caller: self.owner.as_str(),
                        server: Some(server_label),
                        tool: Some(name),
                        outcome: mcp_outcome(outcome),
                        elapsed: Duration::from_millis(*duration_ms),
                    });
                }
                if let Some(call) = call.filter(|_| ran) {
                    self.spans.executed(&call, at, output);
                }
            }
            _ => {}
        }
    }

    /// The model is asked without a loop around it. One that follows all the same does not ask again.
    pub(crate) fn asks(&mut self) {
        self.turn_started(epoch_seconds(), false);
        self.has_asked = true;
    }

    /// It has answered, and that was all.
    pub(crate) fn answered(&mut self, response: &ModelResponse) {
        let at = epoch_seconds();
        self.note_failovers();
        self.first_token(at);
        for item in &response.items {
            self.spans.said(item);
        }
        let answer = Answer {
            finish: finish_word(response.finish, false),
            usage: response.usage.as_ref(),
            model: response.model.as_deref(),
        };
        self.answer_finished(&answer, response.response_id.as_deref(), at);
    }

    fn turn_started(&mut self, timestamp: f64, is_repeated: bool) {
        if std::mem::take(&mut self.has_asked) {
            return;
        }
        self.model.requests.inc();
        self.awaits_turn = true;
        self.calls = false;
        self.recorder.asked(timestamp, is_repeated);
    }

    fn answer_finished(&mut self, answer: &Answer<'_>, response_id: Option<&str>, timestamp: f64) {
        self.model.turns.inc();
        if let Some(usage) = answer.usage {
            self.model.used(usage);
        }
        self.recorder.answered(answer);
        self.spans.answer_is(response_id);
        self.close_attempt(timestamp, None, None);
    }

    /// Backends that failed before the one that answers.
    fn note_failovers(&self) {
        for failover in self.witness.take_failovers() {
            self.model.failed_over(&failover);
            self.recorder.note(NoteKind::Failover {
                from: failover.from.to_string(),
                to: failover.to.to_string(),
                error: absence_word(failover.why).to_owned(),
            });
        }
    }

    fn first_token(&mut self, timestamp: f64) {
        self.awaits_turn = false;
        if std::mem::take(&mut self.awaits_first) {
            let waited = self.created.elapsed();
            self.model.first_token.observe(waited.as_secs_f64());
        }
        self.recorder.first_token(timestamp);
    }

    /// A request to the model is over, well or badly.
    fn close_attempt(&mut self, timestamp: f64, error: Option<Word>, delay_ms: Option<u64>) {
        self.awaits_turn = false;
        let closed = self.recorder.close_attempt(timestamp, error, delay_ms);
        if let Some(turn) = closed {
            self.spans.asked(&turn, timestamp);
        }
    }

    fn count_call(&self, kind: &str, outcome: Word, took: Option<Duration>) {
        let meters = &self.watch.metrics.meters;
        let kind = Name::from(kind);
        if let Some(took) = took {
            let labels = KindLabels { kind: kind.clone() };
            let seconds = took.as_secs_f64();
            meters.tool_seconds.get_or_create(&labels).observe(seconds);
        }
        let labels = CallLabels { kind, outcome };
        meters.tool_calls.get_or_create(&labels).inc();
    }

    /// The context is being summed up; to be told how that ended.
    pub(crate) fn compacting() -> Compacting {
        Compacting {
            started: epoch_seconds(),
        }
    }

    /// The context was summed up, or could not be.
    pub(crate) fn compacted(&mut self, begun: &Compacting, carried: &Result<Carried, Halt>) {
        let cost = carried.as_ref().map(|carried| carried.usage);
        let (outcome, usage) = self.watch.compacted(&self.model, cost);
        let at = self.recorder.ms(begun.started);
        let duration_ms = rounded(self.recorder.ms(epoch_seconds()) - at);
        self.recorder.add_usage(usage);
        let kind = NoteKind::Compaction {
            duration_ms,
            outcome: outcome.to_owned(),
            usage,
        };
        self.recorder.note_at(at, kind);
    }

    /// The context is cut, and the model asked again.
    pub(crate) fn shortened(&mut self) {
        self.watch.metrics.meters.truncations.inc();
        self.recorder.note(NoteKind::Truncation);
    }

    /// The engine has come to an end with it. There may be another beginning, with less context.
    pub(crate) fn leg(&mut self, outcome: &Outcome) {
        let given_up = match &outcome.end {
            End::Failed {
                reason: FailedReason::Model { error, .. },
                ..
            } => {
                self.model.failed(error.kind);
                Some(error_word(error.kind))
            }
            End::Incomplete { .. } => Some("timeout"),
            End::Cancelled => Some("cancelled"),
            _ => None,
        };
        if given_up.is_some() {
            self.close_attempt(epoch_seconds(), given_up, None);
        }
        self.watch.metrics.meters.disclosed(&outcome.counters);
        let hydrations = &self.watch.metrics.meters.hydrations;
        self.recorder.judged(&outcome.tool_calls, |record, open| {
            let outcome = trust_word(record);
            let labels = OutcomeLabels { outcome };
            hydrations.get_or_create(&labels).inc();
            if let Some(open) = open {
                self.count_call(&open.kind, open.outcome, None);
            }
        });
    }

    /// The run is left for another process to go on with.
    pub(crate) fn put_away(&mut self) {
        if self.stage == Stage::Begun {
            self.close("put_away", None);
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
        self.close(outcome, reason);
    }

    fn close(&mut self, outcome: Word, reason: Option<String>) {
        self.stage = Stage::Ended;
        self.close_attempt(epoch_seconds(), Some("broken_off"), None);
        let meters = &self.watch.metrics.meters;
        meters.active_runs.dec();
        if self.found_by.is_some() {
            meters.background_runs.dec();
        }
        let labels = RunLabels {
            model: self.model.name.clone(),
            outcome,
        };
        meters.runs.get_or_create(&labels).inc();
        self.model.run.observe(self.created.elapsed().as_secs_f64());
        let (request, spans) = (&self.request, &mut self.spans);
        self.recorder.ended(outcome, reason, |trace| {
            request.ran(&trace.usage);
            spans.ended(trace);
        });
    }

    /// The record as it stands, to go on from.
    pub(crate) fn snapshot(&self) -> RunTrace {
        self.recorder.snapshot()
    }

    /// The record as it stands, to be stored.
    pub(crate) fn to_json(&self) -> Option<Box<RawValue>> {
        self.recorder.to_json()
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

fn requested(call: &ToolCall, tools: &Tools) -> CallTrace {
    CallTrace {
        call_id: call.call_id.clone().unwrap_or_default(),
        name: call.name.clone(),
        kind: kind_of(tools.get(&call.name)).to_owned(),
        ..CallTrace::default()
    }
}

/// What a tool is counted as. Names of the client's making are not among them.
fn kind_of(shown: Option<&Shown>) -> &str {
    match shown {
        Some(Shown::Function { .. }) => "function",
        Some(Shown::Custom { .. }) => "custom",
        Some(Shown::ToolSearch | Shown::ServerSearch | Shown::InternalSearch) => "tool_search",
        Some(Shown::Hosted { item_type }) => item_type,
        Some(Shown::Mcp { .. }) => "mcp",
        None => "unknown",
    }
}

/// The outcome of a call in the terms of the gateway, so that both doors can be added up.
fn mcp_outcome(outcome: Word) -> Word {
    match outcome {
        "succeeded" | "cancelled" | "denied" => outcome,
        "tool" | "tool_error" => "tool_error",
        _ => "failed",
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

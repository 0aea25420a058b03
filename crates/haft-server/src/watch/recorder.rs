//! Writes down how a run goes: its record, changed by what is heard.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::Usage;
use haft_engine::{CallRecord, CallStatus};
use serde_json::value::{RawValue, to_raw_value};

use super::epoch_seconds;
use super::metrics::Word;
use super::record::{AttemptTrace, CallTrace, HydrationTrace, Note, NoteKind, RunTrace, TurnTrace};

/// So many calls are written down for one run.
const MAX_CALLS: usize = 2048;

/// The record of one run, which others may look at.
pub(super) struct Recorder {
    trace: Arc<Mutex<RunTrace>>,
    /// When it began, in seconds since the epoch.
    started_at: f64,
}

/// What a turn's answer came to.
pub(super) struct Answer<'a> {
    pub(super) finish: Word,
    pub(super) usage: Option<&'a Usage>,
    pub(super) model: Option<&'a str>,
}

/// A call that came to nothing yet: somebody else has it.
pub(super) struct Open {
    pub(super) kind: String,
    pub(super) outcome: Word,
}

impl Recorder {
    pub(super) fn new(response_id: &str, request_id: &str, model: &str) -> Self {
        let started_at = epoch_seconds();
        let trace = RunTrace {
            object: "response.trace".to_owned(),
            response_id: response_id.to_owned(),
            request_id: request_id.to_owned(),
            model: model.to_owned(),
            started_at,
            ..RunTrace::default()
        };
        Self {
            trace: Arc::new(Mutex::new(trace)),
            started_at,
        }
    }

    /// For whoever wants to look at it while it goes on.
    pub(super) fn shared(&self) -> Arc<Mutex<RunTrace>> {
        Arc::clone(&self.trace)
    }

    /// Goes on with the record of a response that another process began.
    pub(super) fn resume(&mut self, response_id: &str, earlier: Option<RunTrace>) {
        if let Some(earlier) = earlier {
            // Times go on counting from its first beginning.
            self.started_at = earlier.started_at;
            *self.trace() = earlier;
        }
        response_id.clone_into(&mut self.trace().response_id);
        self.note(NoteKind::Resumed);
    }

    pub(super) fn note(&self, kind: NoteKind) {
        self.note_at(self.ms(epoch_seconds()), kind);
    }

    pub(super) fn note_at(&self, at_ms: f64, kind: NoteKind) {
        self.trace().notes.push(Note { at_ms, kind });
    }

    pub(super) fn add_usage(&self, usage: Usage) {
        self.trace().usage += usage;
    }

    /// The model is asked, for the first time in this turn or again.
    pub(super) fn asked(&self, timestamp: f64, is_again: bool) {
        let start_ms = self.ms(timestamp);
        let attempt = AttemptTrace {
            start_ms,
            ..AttemptTrace::default()
        };
        let mut trace = self.trace();
        trace.usage.requests += 1;
        match trace.turns.last_mut() {
            Some(turn) if is_again => turn.attempts.push(attempt),
            _ => trace.turns.push(TurnTrace {
                start_ms,
                attempts: vec![attempt],
                ..TurnTrace::default()
            }),
        }
    }

    pub(super) fn first_token(&self, timestamp: f64) {
        let at = self.ms(timestamp);
        self.with_turn(|turn| turn.first_token_ms = Some(at));
    }

    pub(super) fn answered(&self, answer: &Answer<'_>) {
        if let Some(usage) = answer.usage {
            // The request itself was counted when it was sent.
            self.add_usage(Usage {
                requests: 0,
                ..*usage
            });
        }
        self.with_turn(|turn| {
            turn.finish = Some(answer.finish.to_owned());
            turn.model = answer.model.map(haft_core::cut);
            turn.usage = answer.usage.copied();
        });
    }

    pub(super) fn discarded(&self) {
        self.with_turn(|turn| turn.discarded = true);
    }

    /// A request to the model is over, well or badly. Gives the turn as it stands, if the request
    /// was open.
    pub(super) fn close_attempt(
        &self,
        timestamp: f64,
        error: Option<Word>,
        delay_ms: Option<u64>,
    ) -> Option<TurnTrace> {
        let at = self.ms(timestamp);
        let mut trace = self.trace();
        let turn = trace.turns.last_mut()?;
        let attempt = turn.attempts.last_mut()?;
        if attempt.end_ms.is_some() {
            return None;
        }
        attempt.end_ms = Some(at);
        attempt.error = error.map(str::to_owned);
        attempt.delay_ms = delay_ms;
        if delay_ms.is_none() {
            turn.end_ms = Some(at);
        }
        Some(TurnTrace {
            attempts: turn.attempts.last().cloned().into_iter().collect(),
            calls: Vec::new(),
            ..turn.clone()
        })
    }

    pub(super) fn calls_requested(&self, mut calls: Vec<CallTrace>) {
        let mut trace = self.trace();
        if trace.turns.is_empty() {
            // Somebody has allowed calls of an earlier response: the model was not asked for them here.
            let start_ms = self.ms(epoch_seconds());
            trace.turns.push(TurnTrace {
                start_ms,
                end_ms: Some(start_ms),
                ..TurnTrace::default()
            });
        }
        let known: usize = trace.turns.iter().map(|turn| turn.calls.len()).sum();
        let room = MAX_CALLS.saturating_sub(known);
        trace.calls_omitted += calls.len().saturating_sub(room) as u64;
        calls.truncate(room);
        if let Some(turn) = trace.turns.last_mut() {
            turn.calls.extend(calls);
        }
    }

    pub(super) fn call_started(&self, call_id: &str, timestamp: f64) {
        let at = self.ms(timestamp);
        self.with_call(call_id, |call| call.start_ms = Some(at));
    }

    /// Gives the call as it stands, if it is written down.
    pub(super) fn call_ended(
        &self,
        call_id: &str,
        timestamp: f64,
        outcome: Word,
        output_bytes: u64,
    ) -> Option<CallTrace> {
        let at = self.ms(timestamp);
        self.with_call(call_id, |call| {
            call.outcome = Some(outcome.to_owned());
            call.output_bytes = Some(output_bytes);
            call.duration_ms = call.start_ms.map(|start| rounded((at - start).max(0.0)));
            call.clone()
        })
    }

    /// Takes in what the engine says of the calls in the end. `count` hears of each: what was made of
    /// its arguments, and where it is if it came to nothing here.
    pub(super) fn judged(
        &self,
        records: &[CallRecord],
        mut count: impl FnMut(&CallRecord, Option<Open>),
    ) {
        let mut trace = self.trace();
        let calls = trace.turns.iter_mut().flat_map(|turn| &mut turn.calls);
        let mut unjudged: HashMap<String, &mut CallTrace> = calls
            .filter(|call| call.hydration.is_none())
            .map(|call| (call.call_id.clone(), call))
            .collect();
        for record in records {
            let Some(call) = unjudged.get_mut(&record.call_id) else {
                continue;
            };
            call.hydration = Some(HydrationTrace::of(record));
            call.loaded_by_call = record.loaded_by_call;
            // Behind it stands a reason, in anybody's words.
            let verdict = record.verdict.as_deref();
            let verdict = verdict.and_then(|verdict| verdict.split(':').next());
            call.verdict = verdict.map(str::to_owned);
            let outcome = match record.status {
                CallStatus::Pending => Some("handed_over"),
                CallStatus::Suspended => Some("suspended"),
                _ => None,
            };
            if let Some(outcome) = outcome {
                call.outcome = Some(outcome.to_owned());
            }
            let open = outcome.map(|outcome| Open {
                kind: call.kind.clone(),
                outcome,
            });
            count(record, open);
        }
    }

    /// The run is over. `hear` hears the record.
    pub(super) fn ended(
        &self,
        outcome: Word,
        reason: Option<String>,
        hear: impl FnOnce(&RunTrace),
    ) {
        let duration = self.ms(epoch_seconds());
        let mut trace = self.trace();
        trace.duration_ms = Some(duration);
        trace.outcome = Some(outcome.to_owned());
        trace.reason = reason;
        hear(&trace);
    }

    pub(super) fn snapshot(&self) -> RunTrace {
        self.trace().clone()
    }

    pub(super) fn to_json(&self) -> Option<Box<RawValue>> {
        to_raw_value(&*self.trace()).ok()
    }

    fn with_turn(&self, change: impl FnOnce(&mut TurnTrace)) {
        if let Some(turn) = self.trace().turns.last_mut() {
            change(turn);
        }
    }

    fn with_call<T>(&self, call_id: &str, change: impl FnOnce(&mut CallTrace) -> T) -> Option<T> {
        let mut trace = self.trace();
        // The calls of the last turn are those that run.
        let turns = trace.turns.iter_mut().rev();
        let mut calls = turns.flat_map(|turn| turn.calls.iter_mut().rev());
        calls.find(|call| call.call_id == call_id).map(change)
    }

    fn trace(&self) -> MutexGuard<'_, RunTrace> {
        // What was written down stays true, whoever panicked.
        self.trace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds since the run's beginning.
    pub(super) fn ms(&self, timestamp: f64) -> f64 {
        rounded((timestamp - self.started_at).max(0.0) * 1000.0)
    }
}

/// Microseconds are enough.
pub(super) fn rounded(milliseconds: f64) -> f64 {
    (milliseconds * 1000.0).round() / 1000.0
}

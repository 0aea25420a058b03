//! Where running calls write how far they are: merged, so that no call can flood a run.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::task::Context;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use haft_core::{ProgressSink, ToolProgress};
use tokio::time::Instant;

/// A call is heard at most so often; what it says in between is merged.
const INTERVAL: Duration = Duration::from_millis(200);

/// The latest progress of each running call.
#[derive(Default)]
pub(crate) struct ProgressBoard {
    calls: Mutex<HashMap<String, Call>>,
    waker: AtomicWaker,
}

#[derive(Default)]
struct Call {
    waiting: Option<ToolProgress>,
    heard: Option<Instant>,
}

impl Call {
    /// How long until it may be heard; none if it has nothing to say.
    fn due_in(&self, now: Instant) -> Option<Duration> {
        self.waiting.as_ref()?;
        let since = self.heard.map_or(INTERVAL, |heard| now - heard);
        Some(INTERVAL.saturating_sub(since))
    }
}

/// What there is to hear.
pub(crate) enum Heard {
    /// A call says how far it is.
    Call(String, ToolProgress),
    /// One will be heard after this time.
    Later(Duration),
    /// Nothing until somebody reports.
    Nothing,
}

impl ProgressBoard {
    /// What a call has to say, not more often than it may.
    pub(crate) fn hear(&self, cx: &Context<'_>) -> Heard {
        self.waker.register(cx.waker());
        let now = Instant::now();
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let due = calls
            .iter_mut()
            .filter_map(|(call_id, call)| Some((call.due_in(now)?, call_id, call)))
            .min_by_key(|(due_in, ..)| *due_in);
        match due {
            Some((Duration::ZERO, call_id, call)) => {
                call.heard = Some(now);
                match call.waiting.take() {
                    Some(said) => Heard::Call(call_id.clone(), said),
                    None => Heard::Nothing,
                }
            }
            Some((later, ..)) => Heard::Later(later),
            None => Heard::Nothing,
        }
    }

    /// What a call that is over said last.
    pub(crate) fn last_words(&self, call_id: &str) -> Option<ToolProgress> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.remove(call_id)?.waiting
    }
}

impl ProgressSink for ProgressBoard {
    fn report(&self, call_id: &str, progress: ToolProgress) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let call = calls.entry(call_id.to_owned()).or_default();
        call.waiting = Some(match call.waiting.take() {
            Some(earlier) => earlier.merged(progress),
            None => progress,
        });
        drop(calls);
        self.waker.wake();
    }
}

//! What a run has said and nobody has heard yet.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::time::timeout;

use super::listener::{MAX_STALL, Signal};

/// How much may be said that nobody has heard.
const MAX_UNHEARD: usize = 64;

/// What a run has said and its follower has not heard yet.
///
/// The follower drives the run, so neither has to wake the other: he lets it go on when he has heard
/// everything.
#[derive(Clone, Default)]
pub(super) struct Unheard(Arc<Mutex<Words>>);

#[derive(Default)]
struct Words {
    signals: VecDeque<Signal>,
    /// Nobody will hear anything any more.
    is_left: bool,
}

/// Nobody listens, or has listened for too long.
#[derive(Debug)]
pub(super) struct Gone;

impl Unheard {
    /// Says something, when there is room for it.
    pub(super) async fn say(&self, signal: Signal) -> Result<(), Gone> {
        let Err(signal) = self.try_say(signal)? else {
            return Ok(());
        };
        let mut unsaid = Some(signal);
        let said = poll_fn(|_| match unsaid.take().map(|signal| self.try_say(signal)) {
            Some(Ok(Err(signal))) => {
                unsaid = Some(signal);
                Poll::Pending
            }
            Some(Err(gone)) => Poll::Ready(Err(gone)),
            Some(Ok(Ok(()))) | None => Poll::Ready(Ok(())),
        });
        timeout(MAX_STALL, said).await.unwrap_or(Err(Gone))
    }

    /// Gives the signal back where there is no room.
    fn try_say(&self, signal: Signal) -> Result<Result<(), Signal>, Gone> {
        let mut words = self.words();
        if words.is_left {
            return Err(Gone);
        }
        if words.signals.len() >= MAX_UNHEARD {
            return Ok(Err(signal));
        }
        words.signals.push_back(signal);
        Ok(Ok(()))
    }

    pub(super) fn hear(&self) -> Option<Signal> {
        self.words().signals.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words().signals.is_empty()
    }

    pub(super) fn leave(&self) {
        let mut words = self.words();
        words.is_left = true;
        words.signals.clear();
    }

    fn words(&self) -> MutexGuard<'_, Words> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "unheard_tests.rs"]
mod tests;

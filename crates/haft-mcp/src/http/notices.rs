//! The stream of notices that servers of the legacy era have, and whether it is there yet.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// How long the first request waits for the stream. Some servers say nothing until there is something
/// to say.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nobody has asked for it.
    Unasked,
    /// It is on its way.
    Awaited,
    /// It is there, or there will be none.
    Settled,
}

/// Lets requests wait until the stream of notices is open. Otherwise what the first of them causes may
/// be told before anybody listens, and a server may take the stream for the continuation of another.
#[derive(Debug, Clone)]
pub(super) struct Notices(Arc<watch::Sender<State>>);

impl Default for Notices {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(State::Unasked)))
    }
}

impl Notices {
    /// A session has begun, so that rmcp asks for the stream.
    pub(super) fn await_stream(&self) {
        self.0.send_if_modified(|state| {
            let is_new = *state == State::Unasked;
            if is_new {
                *state = State::Awaited;
            }
            is_new
        });
    }

    /// The server has answered, well or not.
    pub(super) fn settle(&self) {
        self.0.send_replace(State::Settled);
    }

    /// Waits for the stream, once and not for long.
    pub(super) async fn ready(&self) {
        let mut state = self.0.subscribe();
        let awaited = state.wait_for(|state| *state != State::Awaited);
        if tokio::time::timeout(PATIENCE, awaited).await.is_err() {
            self.settle();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_stream_that_is_on_its_way_is_waited_for_and_only_once() {
        let began = tokio::time::Instant::now();
        let notices = Notices::default();
        notices.ready().await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        notices.await_stream();
        notices.ready().await;
        assert_eq!(began.elapsed(), PATIENCE);
        notices.await_stream();
        notices.ready().await;
        assert_eq!(began.elapsed(), PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_came_before_anybody_waited_counts() {
        let notices = Notices::default();
        notices.settle();
        notices.await_stream();
        let began = tokio::time::Instant::now();
        notices.ready().await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}

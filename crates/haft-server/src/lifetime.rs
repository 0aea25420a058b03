//! How long what the server began goes on: nothing outlives it.
//!
//! Three signals, one after the other. *Draining*: everything goes on, but nobody should send anything
//! new. *Stopping*: nothing new begins, and whoever waits for a next
//! request goes. *Halted*: what still runs is cancelled. Whoever began a task is waited for.

use std::future::Future;

use haft_core::Cancel;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::Instrument as _;

use crate::error::{ApiError, ErrorCode};

/// The server's tasks, and the signals that end them.
#[derive(Debug, Default)]
pub(crate) struct Lifetime {
    tasks: TaskTracker,
    draining: Cancel,
    stopping: Cancel,
    halted: Cancel,
}

impl Lifetime {
    /// Begins a task that the server waits for before it ends.
    pub(crate) fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        // What it logs belongs to the request that began it.
        self.tasks.spawn(task.in_current_span())
    }

    /// For a task that somebody else began: it is waited for as long as this is held.
    pub(crate) fn token(&self) -> TaskTrackerToken {
        self.tasks.token()
    }

    /// A signal that cancels one run, given at the latest when everything is halted.
    pub(crate) fn run_signal(&self) -> Cancel {
        self.halted.child()
    }

    /// Says that nobody should send anything new.
    pub(crate) fn drain(&self) {
        self.draining.cancel();
    }

    /// Whether new requests had better go elsewhere.
    #[allow(
        dead_code,
        reason = "asked by whoever tells whether the server is ready"
    )]
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled() || self.is_stopping()
    }

    /// Says that nothing new is to begin.
    pub(crate) fn stop(&self) {
        self.stopping.cancel();
        self.tasks.close();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Waits until nothing new is to begin.
    pub(crate) async fn stopping(&self) {
        self.stopping.cancelled().await;
    }

    /// The signal that nothing new is to begin, for somebody who outlives this borrow.
    pub(crate) fn stopping_signal(&self) -> Cancel {
        self.stopping.clone()
    }

    /// Waits until every task has ended, which can only be after [`stop`](Self::stop).
    pub(crate) async fn ended(&self) {
        self.tasks.wait().await;
    }

    /// Cancels what still runs. It comes to its end soon after.
    pub(crate) fn halt(&self) {
        self.halted.cancel();
    }
}

/// What becomes of a response when the server goes away under it.
pub(crate) fn stopped() -> ApiError {
    ApiError::new(
        ErrorCode::ServerError,
        "the server was stopped while the response was being worked on: send it again",
    )
}

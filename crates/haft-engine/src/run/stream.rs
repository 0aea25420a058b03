//! A run under way.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use haft_core::Cancel;

use crate::callbacks::Callbacks;
use crate::driver::Driver;
use crate::event::RunEvent;
use crate::outcome::Outcome;

use super::setup::Prepared;

/// A started run: its events, one after the other, and its outcome.
///
/// The run goes on as far as it is read; dropping it stops everything that it began.
pub struct RunStream {
    driver: Driver,
    callbacks: Callbacks,
    cancel: Cancel,
}

impl RunStream {
    pub(super) fn new(prepared: Prepared) -> Self {
        Self {
            cancel: prepared.means.cancel.clone(),
            driver: Driver::new(prepared.machine, prepared.means),
            callbacks: prepared.callbacks,
        }
    }

    /// The next event; none after the last.
    pub async fn next(&mut self) -> Option<RunEvent> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// The signal that stops this run.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Reads what is left and gives the outcome.
    pub async fn finish(mut self) -> Outcome {
        while self.next().await.is_some() {}
        self.driver.into_machine().into_outcome()
    }
}

impl Stream for RunStream {
    type Item = RunEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        let polled = self.driver.poll_event(cx);
        if let Poll::Ready(Some(event)) = &polled {
            self.callbacks.hear(event);
        }
        polled
    }
}

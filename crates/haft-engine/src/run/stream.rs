//! A run under way.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use haft_core::Cancel;

use crate::callbacks::Callbacks;
use crate::driver::{Driver, Step};
use crate::event::RunEvent;
use crate::outcome::Outcome;
use crate::session::Session;

use super::setup::Prepared;

/// A started run: its events, one after the other, and its outcome.
///
/// The run goes on as far as it is read; dropping it stops everything that it began.
pub struct RunStream {
    /// Apart: whoever holds a stream keeps it while he waits, and moves it about before.
    driver: Box<Driver>,
    callbacks: Callbacks,
    cancel: Cancel,
}

impl RunStream {
    pub(super) fn new(prepared: Prepared) -> Self {
        Self {
            cancel: prepared.means.cancel.clone(),
            driver: Box::new(Driver::new(prepared.machine, prepared.means)),
            callbacks: prepared.callbacks,
        }
    }

    /// The next event; none after the last.
    pub async fn next(&mut self) -> Option<RunEvent> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// The next step; none after the last. At [`Step::Checkpoint`] and [`Step::Journal`] the run
    /// waits until it is read on, so that a host can put the [session](Self::session) away first.
    pub async fn next_step(&mut self) -> Option<Step> {
        std::future::poll_fn(|cx| self.poll_step(cx)).await
    }

    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Option<Step>> {
        let polled = self.driver.poll_step(cx);
        if let Poll::Ready(Some(Step::Event(event))) = &polled {
            self.callbacks.hear(event);
        }
        polled
    }

    /// The session as it is now: whole between two turns and at the steps that say so.
    pub fn session(&mut self) -> &Session {
        self.driver.checkpoint()
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
        loop {
            match ready!(self.poll_step(cx)) {
                Some(Step::Event(event)) => return Poll::Ready(Some(event)),
                Some(Step::Checkpoint | Step::Journal) => {}
                None => return Poll::Ready(None),
            }
        }
    }
}

//! A run as somebody who is there hears it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use haft_core::{BoxFuture, Cancel};
use tokio::sync::mpsc;

use super::listener::{Commitment, Signal};
use crate::app::App;

/// The one who hears of a run that ends when he goes away.
///
/// The run goes on as far as he listens: it has no task of its own unless he leaves before its end.
pub(crate) struct Follower {
    pub(super) app: Arc<App>,
    /// None when it is over.
    pub(super) run: Option<BoxFuture<'static, ()>>,
    pub(super) signals: mpsc::Receiver<Signal>,
    pub(crate) commitment: Arc<Commitment>,
    pub(super) cancel: Cancel,
}

impl Follower {
    pub(crate) async fn next(&mut self) -> Option<Signal> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Signal>> {
        loop {
            // What is said waits for nobody: the run goes on when everything of it is heard.
            if let Ok(signal) = self.signals.try_recv() {
                return Poll::Ready(Some(signal));
            }
            let Some(run) = &mut self.run else {
                return Poll::Ready(None);
            };
            let polled = AssertUnwindSafe(|| run.as_mut().poll(cx));
            match std::panic::catch_unwind(polled) {
                Ok(Poll::Ready(())) => self.run = None,
                Ok(Poll::Pending) if self.signals.is_empty() => return Poll::Pending,
                Ok(Poll::Pending) => {}
                Err(panic) => {
                    let panic = haft_core::panic_text(&*panic);
                    tracing::error!(panic, "a run broke");
                    self.run = None;
                }
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.cancel.cancel();
        // What he leaves behind comes to its end, and is stored if it is to be.
        if let Some(run) = self.run.take()
            && tokio::runtime::Handle::try_current().is_ok()
        {
            self.app.lifetime.spawn(run);
        }
    }
}

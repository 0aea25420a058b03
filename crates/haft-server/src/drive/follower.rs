//! A run as somebody who is there hears it.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use haft_core::{BoxFuture, Cancel};

use super::listener::{Commitment, Signal};
use super::unheard::Unheard;
use crate::app::App;

/// The one who hears of a run that ends when he goes away.
///
/// The run goes on as far as he listens: it has no task of its own unless he leaves before its end.
pub(crate) struct Follower {
    app: Arc<App>,
    /// None when it is over.
    run: Option<BoxFuture<'static, ()>>,
    unheard: Unheard,
    pub(crate) commitment: Arc<Commitment>,
    cancel: Cancel,
}

impl Follower {
    /// One who follows this run, which says everything here and heeds this signal.
    pub(super) fn new(
        app: Arc<App>,
        run: BoxFuture<'static, ()>,
        unheard: Unheard,
        commitment: Arc<Commitment>,
        cancel: Cancel,
    ) -> Self {
        Self {
            app,
            run: Some(run),
            unheard,
            commitment,
            cancel,
        }
    }

    pub(crate) async fn next(&mut self) -> Option<Signal> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Signal>> {
        loop {
            // What is said waits for nobody: the run goes on when everything of it is heard.
            if let Some(signal) = self.unheard.hear() {
                return Poll::Ready(Some(signal));
            }
            let Some(run) = &mut self.run else {
                return Poll::Ready(None);
            };
            let polled = AssertUnwindSafe(|| run.as_mut().poll(cx));
            match std::panic::catch_unwind(polled) {
                Ok(Poll::Ready(())) => self.run = None,
                Ok(Poll::Pending) if self.unheard.is_empty() => return Poll::Pending,
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
        self.unheard.leave();
        self.cancel.cancel();
        // What he leaves behind comes to its end, and is stored if it is to be.
        if let Some(run) = self.run.take()
            && tokio::runtime::Handle::try_current().is_ok()
        {
            self.app.lifetime.spawn(run);
        }
    }
}

//! Ctrl-C while something is shown. At a prompt it is a key like any other.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals of Ctrl-C, caught from now on.
pub(super) struct Interrupts(Signal);

impl Interrupts {
    pub(super) fn listen() -> io::Result<Self> {
        signal(SignalKind::interrupt()).map(Self)
    }

    /// Forgets those that came until now.
    pub(super) fn forget(&mut self) {
        let mut nobody = std::task::Context::from_waker(std::task::Waker::noop());
        while self.0.poll_recv(&mut nobody) == std::task::Poll::Ready(Some(())) {}
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            // Nobody can send one any more.
            std::future::pending::<()>().await;
        }
    }
}

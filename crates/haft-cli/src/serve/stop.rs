//! When to stop: the first signal asks, the second insists, and so does the clock.

use std::io;
use std::time::Duration;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that stop a server, caught from now on.
pub(super) struct Signals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
}

impl Signals {
    /// Begins to catch them: before anybody is told that the server is ready.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Done at the first signal. From then on, another one ends the process at once, and so does the
    /// clock when the server's own limits did not hold.
    pub(super) async fn stop(mut self, patience: Duration) {
        self.next().await;
        tracing::info!("stopping when nothing runs any more; a second signal stops at once");
        tokio::spawn(async move {
            let code = tokio::select! {
                code = self.next() => code,
                () = tokio::time::sleep(patience) => 1,
            };
            tracing::warn!("stopped before everything had ended");
            std::process::exit(code);
        });
    }

    /// Waits for a signal; the code of a process that it ends.
    #[cfg(unix)]
    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => 130,
            _ = self.terminate.recv() => 143,
        }
    }

    #[cfg(not(unix))]
    async fn next(&mut self) -> i32 {
        // If it cannot be caught, it ends the process by itself.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        130
    }
}

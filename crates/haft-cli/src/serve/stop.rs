//! When to stop: the first signal asks, the second insists, and so does the clock.

use std::io;
use std::time::Duration;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long what is under way may take to end. Whoever manages the process waits no longer either.
const PATIENCE: Duration = Duration::from_secs(30);

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

    /// Done at the first signal. From then on, another one ends the process at once.
    pub(super) async fn stop(mut self) {
        self.next().await;
        tracing::info!("stopping when nothing runs any more; a second signal stops at once");
        tokio::spawn(async move {
            let code = tokio::select! {
                code = self.next() => code,
                () = tokio::time::sleep(PATIENCE) => 1,
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

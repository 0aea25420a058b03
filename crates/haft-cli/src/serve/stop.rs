//! The signals that stop a server: the first one asks, a second one or the deadline ends the process.
//!
//! They are handled on a thread of their own. Whatever keeps the server's runtime busy, SIGTERM ends the process.

use std::io;
use std::process::exit;
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};

/// The signals that stop a server, caught from now on.
pub(super) struct Signals {
    first: oneshot::Receiver<()>,
    /// How long the process may take to end after the first signal, once it is known.
    deadline: watch::Sender<Duration>,
}

/// How long the last line of the log may take.
const LOG_WAIT: Duration = Duration::from_secs(1);

/// The deadline where a signal comes before the server is configured.
const EARLY_DEADLINE: Duration = Duration::from_secs(10);

impl Signals {
    /// Begins to catch signals, before the server reports that it is ready.
    pub(super) fn listen() -> io::Result<Self> {
        let (asked, first) = oneshot::channel();
        let (deadline, known_deadline) = watch::channel(EARLY_DEADLINE);
        let (ready, is_ready) = std::sync::mpsc::channel();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = move || {
            runtime.block_on(async {
                let caught = SignalStreams::new();
                let mut caught = match caught {
                    Ok(caught) => {
                        let _ = ready.send(Ok(()));
                        caught
                    }
                    Err(error) => return drop(ready.send(Err(error))),
                };
                caught.next().await;
                let _ = asked.send(());
                let limit = *known_deadline.borrow();
                let code = tokio::select! {
                    code = caught.next() => code,
                    () = tokio::time::sleep(limit) => 1,
                };
                warn_briefly("forced shutdown before all requests had finished");
                exit(code);
            });
        };
        thread::Builder::new()
            .name("signals".into())
            .spawn(handle)?;
        // A thread that ends without a message has panicked.
        is_ready.recv().map_err(io::Error::other)??;
        Ok(Self { first, deadline })
    }

    /// Completes at the first signal. From then on, a second one ends the process at once, and so does the end of `limit`.
    pub(super) async fn stop(self, limit: Duration) {
        let _ = self.deadline.send(limit);
        if self.first.await.is_err() {
            // Without the thread no signal is caught: they end the process by themselves.
            std::future::pending::<()>().await;
        }
        tracing::info!("stopping; a second signal stops at once");
    }
}

/// Logs a warning without blocking: writing to a full pipe that is not read would hang.
fn warn_briefly(message: &'static str) {
    let (logged, is_logged) = std::sync::mpsc::channel();
    thread::spawn(move || {
        tracing::warn!("{message}");
        let _ = logged.send(());
    });
    let _ = is_logged.recv_timeout(LOG_WAIT);
}

/// Signals as the runtime of the thread gets them.
struct SignalStreams {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
}

impl SignalStreams {
    fn new() -> io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for a signal. Gives the exit code of a process that it ends.
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

//! Internal tools: started before they are offered, shut down in the reverse order.
//!
//! Foreign code runs here, so each step runs in a task of its own, where a panic ends nothing else,
//! and under a limit. Whoever drops `start` or `shutdown` half-way leaves no task behind and no tool
//! in between: what was not started is started by the next `start`, what was not shut down is shut
//! down by the next `shutdown`.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use haft_core::{InitContext, InternalTool, ToolError, ToolName};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, timeout, timeout_at};

use crate::catalog::{Catalog, Inner};
use crate::error::Diagnostic;
use haft_core::panic_text;

/// The life of one internal tool.
pub(crate) struct Internal {
    tool: Arc<dyn InternalTool>,
    context: InitContext,
    /// Unique; grows with each registration.
    pub(crate) sequence: u64,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Registered,
    Starting,
    Started,
    Failed,
    Stopped,
}

impl Internal {
    pub(crate) fn new(tool: Arc<dyn InternalTool>, context: InitContext, sequence: u64) -> Self {
        Self {
            tool,
            context,
            sequence,
            stage: Stage::Registered,
        }
    }

    pub(crate) fn is_started(&self) -> bool {
        self.stage == Stage::Started
    }
}

impl fmt::Debug for Internal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Internal({:?})", self.stage)
    }
}

/// Tools that were started, registered still or not, and what went wrong.
#[derive(Debug, Default)]
pub(crate) struct Hosted {
    started: Vec<Claim>,
    failures: Vec<(u64, Diagnostic)>,
}

impl Hosted {
    pub(crate) fn failures(&self) -> impl Iterator<Item = &Diagnostic> {
        self.failures.iter().map(|(_, failure)| failure)
    }

    /// A tool that is gone has nothing to report.
    pub(crate) fn forget(&mut self, sequence: u64) {
        self.failures.retain(|(failed, _)| *failed != sequence);
    }
}

/// One tool that is being started, or was.
#[derive(Clone)]
struct Claim {
    sequence: u64,
    name: ToolName,
    tool: Arc<dyn InternalTool>,
    context: InitContext,
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claim({})", self.name)
    }
}

impl Catalog {
    /// Starts the internal tools that were not started yet, all at once, each within the limit.
    ///
    /// Those that started are offered from the next snapshot on. One that fails, panics or takes too
    /// long is left out for good; the diagnostics say why, here and in
    /// [`diagnostics`](Self::diagnostics). A tool is initialised once: a second `start` takes only
    /// what was registered since.
    ///
    /// Needs a tokio runtime with its timer.
    pub async fn start(&self) -> Vec<Diagnostic> {
        let mut failed = Vec::new();
        let mut changes = self.inner.lifecycle.subscribe();
        loop {
            let claims = self.inner.claim_registered();
            if !claims.is_empty() {
                failed.extend(launch(&self.inner, claims).await);
            } else if !self.inner.is_starting() {
                return failed;
            } else if changes.changed().await.is_err() {
                // Another `start` is at work and ends within its own limit.
                return failed;
            }
        }
    }

    /// Shuts down what was started, in the reverse order of registration, each within the limit.
    ///
    /// From now on none of these tools is offered. A tool that fails to shut down holds up no other;
    /// the diagnostics name it.
    pub async fn shutdown(&self) -> Vec<Diagnostic> {
        let mut changes = self.inner.lifecycle.subscribe();
        while self.inner.is_starting() && changes.changed().await.is_ok() {}
        let mut failed = Vec::new();
        self.inner.stop_offering();
        while let Some(claim) = self.inner.next_to_stop() {
            if let Err(message) = stop(&claim, self.inner.shutdown_timeout).await {
                tracing::warn!(tool = claim.name.as_str(), message, "shutdown failed");
                failed.push(self.inner.record_failure(&claim, message));
            }
        }
        failed
    }
}

/// Runs `initialize` of all claimed tools side by side.
async fn launch(inner: &Arc<Inner>, claims: Vec<Claim>) -> Vec<Diagnostic> {
    // Dropped half-way, the guard makes what is unsettled startable again.
    let _guard = ReleaseUnsettled {
        inner: Arc::clone(inner),
        sequences: claims.iter().map(|claim| claim.sequence).collect(),
    };
    let deadline = Instant::now() + inner.initialize_timeout;
    let mut tasks = JoinSet::new();
    let mut running: HashMap<Id, Claim> = HashMap::new();
    for claim in claims {
        let task = tasks.spawn(initialize(Arc::clone(inner), claim.clone()));
        running.insert(task.id(), claim);
    }
    let mut failed = Vec::new();
    while let Ok(Some(ended)) = timeout_at(deadline, tasks.join_next_with_id()).await {
        let (id, failure) = match ended {
            Ok((id, failure)) => (id, failure),
            Err(error) => (error.id(), Some(describe(error))),
        };
        if let (Some(claim), Some(message)) = (running.remove(&id), failure) {
            failed.extend(inner.settle(&claim, Err(message)));
        }
    }
    for claim in running.into_values() {
        let limit = inner.initialize_timeout;
        let message = format!("it did not start within {limit:?}; it is left out");
        failed.extend(inner.settle(&claim, Err(message)));
    }
    failed.sort_by(|a, b| a.tool.cmp(&b.tool));
    failed
}

/// Records success itself: a tool that is up must be known as such even if nobody waits any more.
async fn initialize(inner: Arc<Inner>, claim: Claim) -> Option<String> {
    match claim.tool.initialize(&claim.context).await {
        Ok(()) => {
            inner.settle(&claim, Ok(()));
            None
        }
        Err(error) => Some(format!(
            "it failed to start: {}; it is left out",
            error.message()
        )),
    }
}

async fn stop(claim: &Claim, limit: Duration) -> Result<(), String> {
    let tool = Arc::clone(&claim.tool);
    // A set of one: dropped half-way, it takes its task along.
    let mut task: JoinSet<Result<(), ToolError>> = JoinSet::new();
    task.spawn(async move { tool.shutdown().await });
    match timeout(limit, task.join_next()).await {
        Err(_) => Err(format!("it did not shut down within {limit:?}")),
        Ok(Some(Ok(Err(error)))) => Err(format!("it failed to shut down: {}", error.message())),
        Ok(Some(Err(error))) => Err(format!("at shutdown {}", describe(error))),
        Ok(None | Some(Ok(Ok(())))) => Ok(()),
    }
}

fn describe(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => format!("it panicked: {}; it is left out", panic_text(&*panic)),
        Err(_) => "its task was cancelled".to_owned(),
    }
}

struct ReleaseUnsettled {
    inner: Arc<Inner>,
    sequences: Vec<u64>,
}

impl Drop for ReleaseUnsettled {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        for native in state.natives.iter_mut() {
            if let Some(internal) = &mut native.internal
                && internal.stage == Stage::Starting
                && self.sequences.contains(&internal.sequence)
            {
                internal.stage = Stage::Registered;
            }
        }
        drop(state);
        self.inner.lifecycle.send_replace(());
    }
}

impl Inner {
    /// Takes all tools that wait to be started, in the order of registration.
    fn claim_registered(&self) -> Vec<Claim> {
        let mut state = self.lock();
        let mut claims = Vec::new();
        for native in state.natives.iter_mut() {
            let name = native.offered().name().clone();
            if let Some(internal) = &mut native.internal
                && internal.stage == Stage::Registered
            {
                internal.stage = Stage::Starting;
                claims.push(Claim {
                    sequence: internal.sequence,
                    name,
                    tool: Arc::clone(&internal.tool),
                    context: internal.context.clone(),
                });
            }
        }
        claims.sort_by_key(|claim| claim.sequence);
        claims
    }

    fn is_starting(&self) -> bool {
        let state = self.lock();
        let mut internals = state.natives.iter().filter_map(|n| n.internal.as_ref());
        internals.any(|internal| internal.stage == Stage::Starting)
    }

    /// Ends the start of one tool, unless somebody has ended it already.
    fn settle(&self, claim: &Claim, outcome: Result<(), String>) -> Option<Diagnostic> {
        let mut state = self.lock();
        let internal = state
            .natives
            .iter_mut()
            .filter_map(|native| native.internal.as_mut())
            .find(|internal| internal.sequence == claim.sequence);
        let failure = match (internal, outcome) {
            // Too late: it was given up.
            (Some(internal), _) if internal.stage != Stage::Starting => None,
            (internal, Ok(())) => {
                if let Some(internal) = internal {
                    internal.stage = Stage::Started;
                    state.changed();
                }
                // Also if it was removed meanwhile: what was started must be shut down.
                state.hosted.started.push(claim.clone());
                None
            }
            (internal, Err(message)) => {
                let is_registered = internal.is_some();
                if let Some(internal) = internal {
                    internal.stage = Stage::Failed;
                }
                tracing::warn!(
                    tool = claim.name.as_str(),
                    message,
                    "an internal tool is out"
                );
                let failure = Diagnostic {
                    tool: claim.name.to_string(),
                    message,
                };
                if is_registered {
                    let failures = &mut state.hosted.failures;
                    failures.push((claim.sequence, failure.clone()));
                }
                Some(failure)
            }
        };
        drop(state);
        self.lifecycle.send_replace(());
        failure
    }

    fn record_failure(&self, claim: &Claim, message: String) -> Diagnostic {
        let failure = Diagnostic {
            tool: claim.name.to_string(),
            message,
        };
        let mut state = self.lock();
        let failures = &mut state.hosted.failures;
        failures.push((claim.sequence, failure.clone()));
        failure
    }

    fn stop_offering(&self) {
        let mut state = self.lock();
        for native in state.natives.iter_mut() {
            if let Some(internal) = &mut native.internal
                && internal.stage == Stage::Started
            {
                internal.stage = Stage::Stopped;
            }
        }
        state.changed();
    }

    fn next_to_stop(&self) -> Option<Claim> {
        let started = &mut self.lock().hosted.started;
        let last = started
            .iter()
            .enumerate()
            .max_by_key(|(_, claim)| claim.sequence)
            .map(|(at, _)| at)?;
        Some(started.remove(last))
    }
}

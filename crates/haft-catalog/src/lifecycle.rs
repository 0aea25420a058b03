//! Internal tools: started before they are offered, shut down in the reverse order.
//!
//! Foreign code runs here, so each step runs in a task of its own, where a panic ends nothing else,
//! and under a limit. Whoever drops `start` or `shutdown` half-way leaves no tool in between: what
//! was not started is started by the next `start`, what was not shut down is shut down by the next
//! `shutdown`.
//!
//! A task cannot be stopped while it blocks. So each claim is an attempt with a number of its own:
//! one that was given up (dropped, or past its limit) and succeeds all the same is shut down at once
//! and never offered, and no other attempt on that tool begins before.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use haft_core::{InitContext, InternalTool, ToolError, ToolName};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{Instant, timeout, timeout_at};

use crate::catalog::{Catalog, Inner, State};
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

/// Tools that were started, registered still or not, attempts to start one, and what went wrong.
#[derive(Debug, Default)]
pub(crate) struct Hosted {
    started: Vec<Claim>,
    /// By number; those that are open or whose task runs.
    attempts: BTreeMap<u64, Attempt>,
    last_attempt: u64,
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

    /// Ends an attempt; says whether it was open still.
    fn close(&mut self, attempt: u64) -> bool {
        let Some(known) = self.attempts.get_mut(&attempt) else {
            return false;
        };
        let was_open = std::mem::replace(&mut known.is_open, false);
        if !known.is_running {
            self.attempts.remove(&attempt);
        }
        was_open
    }
}

/// One attempt to start a tool.
#[derive(Debug)]
struct Attempt {
    claim: Claim,
    /// When it is given up; none while a late success is shut down, which has a limit of its own.
    deadline: Option<Instant>,
    abort: Option<AbortHandle>,
    /// Whether its result still counts.
    is_open: bool,
    /// Whether its task is there still.
    is_running: bool,
}

impl Attempt {
    fn is_overdue(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Whether it stands in the way of another attempt on this tool.
    fn occupies(&self, tool: &Arc<dyn InternalTool>) -> bool {
        self.is_running && Arc::ptr_eq(&self.claim.tool, tool)
    }
}

/// One tool that is being started, or was.
#[derive(Clone)]
struct Claim {
    sequence: u64,
    attempt: u64,
    name: ToolName,
    tool: Arc<dyn InternalTool>,
    context: InitContext,
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claim({}, attempt {})", self.name, self.attempt)
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
    /// Dropped half-way, it gives up what is not up yet; the next `start` tries that again, after the
    /// former attempt has ended. A tool that gets up after it was given up is shut down at once and
    /// not offered.
    ///
    /// Needs a tokio runtime with its timer. The limit cannot interrupt an `initialize` that blocks
    /// its thread: with several worker threads `start` returns in time and the thread stays taken;
    /// on a `current_thread` runtime nothing goes on before `initialize` returns, and the tool is
    /// then left out as too late. Blocking work belongs into `tokio::task::spawn_blocking`. A limit
    /// too large for the clock, such as [`Duration::MAX`], is none.
    pub async fn start(&self) -> Vec<Diagnostic> {
        let mut failed = Vec::new();
        let mut changes = self.inner.lifecycle.subscribe();
        loop {
            let claims = self.inner.claim_registered();
            if !claims.is_empty() {
                failed.extend(launch(&self.inner, claims).await);
                continue;
            }
            // Another `start` may be at work, or what is left of one; also if nobody polls it.
            self.inner.give_up_overdue();
            failed.extend(self.inner.leave_out_occupied());
            let deadlines = self.inner.awaited_by_start();
            if deadlines.is_empty() {
                return failed;
            }
            let next = deadlines.into_iter().flatten().min();
            let _ = until(next, changes.changed()).await;
        }
    }

    /// Shuts down what was started, in the reverse order of registration, each within the limit.
    ///
    /// From now on none of these tools is offered. A tool that fails to shut down holds up no other;
    /// the diagnostics name it. Waits for starts under way, at most until their limit: what is not up
    /// by then is left out, and named too.
    pub async fn shutdown(&self) -> Vec<Diagnostic> {
        let mut changes = self.inner.lifecycle.subscribe();
        let mut failed = Vec::new();
        // Later attempts are somebody else's: waiting for them might never end.
        let last = self.inner.lock().hosted.last_attempt;
        loop {
            failed.extend(self.inner.give_up_overdue());
            let deadlines = self.inner.awaited_by_shutdown(last);
            if deadlines.is_empty() {
                break;
            }
            let next = deadlines.into_iter().flatten().min();
            let _ = until(next, changes.changed()).await;
        }
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

/// Waits until the deadline, or without limit if there is none.
async fn until<F: Future>(deadline: Option<Instant>, future: F) -> Option<F::Output> {
    match deadline {
        Some(deadline) => timeout_at(deadline, future).await.ok(),
        None => Some(future.await),
    }
}

/// Runs `initialize` of all claimed tools side by side.
async fn launch(inner: &Arc<Inner>, claims: Claims) -> Vec<Diagnostic> {
    let Claims { claims, deadline } = claims;
    // Dropped half-way, the guard makes what is unsettled startable again.
    let _guard = ReleaseUnsettled {
        inner: Arc::clone(inner),
        claims: claims.clone(),
    };
    // Made before the first task, so that each attempt is known as ended whatever happens here.
    let claims: Vec<_> = claims
        .into_iter()
        .map(|claim| (Running::new(inner, &claim), claim))
        .collect();
    let mut tasks = JoinSet::new();
    let mut running: HashMap<Id, Claim> = HashMap::new();
    for (guard, claim) in claims {
        let task = tasks.spawn(initialize(guard, claim.clone()));
        running.insert(task.id(), claim.clone());
        inner.can_be_aborted(&claim, task);
    }
    let mut failed = Vec::new();
    while let Some(Some(ended)) = until(deadline, tasks.join_next_with_id()).await {
        match ended {
            Ok((id, failure)) => {
                running.remove(&id);
                failed.extend(failure);
            }
            Err(error) => {
                if let Some(claim) = running.remove(&error.id()) {
                    failed.extend(inner.fail(&claim, describe(error)));
                }
            }
        }
    }
    for claim in running.into_values() {
        failed.extend(inner.fail(&claim, inner.too_late()));
    }
    failed.sort_by(|a, b| a.tool.cmp(&b.tool));
    failed
}

/// Records its result itself: a tool that is up must be known as such even if nobody waits any more.
async fn initialize(running: Running, claim: Claim) -> Option<Diagnostic> {
    let inner = Arc::clone(&running.inner);
    match claim.tool.initialize(&claim.context).await {
        Ok(()) if inner.succeed(&claim) => None,
        Ok(()) => {
            let failure = inner.fail(&claim, inner.too_late());
            // In a task of its own: this one may be aborted already.
            tokio::spawn(stop_late(running, claim));
            failure
        }
        Err(error) => {
            let message = format!("it failed to start: {}; it is left out", error.message());
            inner.fail(&claim, message)
        }
    }
}

/// Shuts down a tool that got up after it was given up. The attempt ends with that.
async fn stop_late(running: Running, claim: Claim) {
    let tool = claim.name.as_str();
    tracing::warn!(
        tool,
        "an internal tool started too late and is shut down again"
    );
    if let Err(message) = stop(&claim, running.inner.shutdown_timeout).await {
        tracing::warn!(tool, message, "shutdown of a late internal tool failed");
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

/// Held by the task of an attempt; dropped with it, however it ends.
struct Running {
    inner: Arc<Inner>,
    attempt: u64,
}

impl Running {
    fn new(inner: &Arc<Inner>, claim: &Claim) -> Self {
        Self {
            inner: Arc::clone(inner),
            attempt: claim.attempt,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        let attempts = &mut state.hosted.attempts;
        let mut gone = None;
        if let Some(attempt) = attempts.get_mut(&self.attempt) {
            attempt.is_running = false;
            if !attempt.is_open {
                gone = attempts.remove(&self.attempt);
            }
        }
        drop(state);
        // It may hold the last pointer to a tool, whose `drop` is foreign code.
        drop(gone);
        self.inner.lifecycle.send_replace(());
    }
}

struct ReleaseUnsettled {
    inner: Arc<Inner>,
    claims: Vec<Claim>,
}

impl Drop for ReleaseUnsettled {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        for claim in &self.claims {
            if state.hosted.close(claim.attempt)
                && let Some(internal) = internal(&mut state, claim.sequence)
            {
                internal.stage = Stage::Registered;
            }
        }
        drop(state);
        self.inner.lifecycle.send_replace(());
    }
}

fn internal(state: &mut State, sequence: u64) -> Option<&mut Internal> {
    let mut internals = state.natives.iter_mut().filter_map(|n| n.internal.as_mut());
    internals.find(|internal| internal.sequence == sequence)
}

/// Tools that are to be started together.
struct Claims {
    claims: Vec<Claim>,
    deadline: Option<Instant>,
}

impl Claims {
    fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }
}

impl Inner {
    fn too_late(&self) -> String {
        let limit = self.initialize_timeout;
        format!("it did not start within {limit:?}; it is left out")
    }

    /// Takes all tools that wait to be started, in the order of registration; not those on which a
    /// former attempt still runs.
    fn claim_registered(&self) -> Claims {
        let deadline = Instant::now().checked_add(self.initialize_timeout);
        let mut state = self.lock();
        let State {
            natives, hosted, ..
        } = &mut *state;
        let mut claims = Vec::new();
        for native in natives.iter_mut() {
            let name = native.offered().name().clone();
            if let Some(internal) = &mut native.internal
                && internal.stage == Stage::Registered
                && !hosted.attempts.values().any(|a| a.occupies(&internal.tool))
            {
                internal.stage = Stage::Starting;
                hosted.last_attempt += 1;
                let claim = Claim {
                    sequence: internal.sequence,
                    attempt: hosted.last_attempt,
                    name,
                    tool: Arc::clone(&internal.tool),
                    context: internal.context.clone(),
                };
                let attempt = Attempt {
                    claim: claim.clone(),
                    deadline,
                    abort: None,
                    is_open: true,
                    is_running: true,
                };
                hosted.attempts.insert(claim.attempt, attempt);
                claims.push(claim);
            }
        }
        drop(state);
        claims.sort_by_key(|claim| claim.sequence);
        Claims { claims, deadline }
    }

    fn can_be_aborted(&self, claim: &Claim, task: AbortHandle) {
        if let Some(attempt) = self.lock().hosted.attempts.get_mut(&claim.attempt) {
            attempt.abort = Some(task);
        }
    }

    /// The deadlines of attempts that decide what a `start` has to say: those of another `start`,
    /// and those that stand in the way of a tool that waits.
    fn awaited_by_start(&self) -> Vec<Option<Instant>> {
        let state = self.lock();
        let internals = state.natives.iter().filter_map(|n| n.internal.as_ref());
        let waiting: Vec<_> = internals
            .filter(|internal| internal.stage == Stage::Registered)
            .collect();
        let attempts = state.hosted.attempts.values();
        attempts
            .filter(|a| a.is_open || waiting.iter().any(|internal| a.occupies(&internal.tool)))
            .map(|a| a.deadline)
            .collect()
    }

    /// The deadlines of attempts up to `last` that may still bring up a tool to shut down, or are
    /// shutting one down.
    fn awaited_by_shutdown(&self, last: u64) -> Vec<Option<Instant>> {
        let now = Instant::now();
        let state = self.lock();
        let attempts = state.hosted.attempts.range(..=last);
        attempts
            .filter(|(_, a)| a.is_open || !a.is_overdue(now))
            .map(|(_, a)| a.deadline)
            .collect()
    }

    /// Ends all attempts that are past their limit, whoever began them.
    fn give_up_overdue(&self) -> Vec<Diagnostic> {
        let now = Instant::now();
        let overdue: Vec<_> = {
            let state = self.lock();
            let attempts = state.hosted.attempts.values();
            attempts
                .filter(|a| a.is_open && a.is_overdue(now))
                .map(|a| (a.claim.clone(), a.abort.clone()))
                .collect()
        };
        let mut failed = Vec::new();
        for (claim, task) in overdue {
            failed.extend(self.fail(&claim, self.too_late()));
            if let Some(task) = task {
                task.abort();
            }
        }
        failed
    }

    /// Leaves out the tools on which a former attempt runs past its limit.
    fn leave_out_occupied(&self) -> Vec<Diagnostic> {
        let now = Instant::now();
        let mut state = self.lock();
        let State {
            natives, hosted, ..
        } = &mut *state;
        let mut failed = Vec::new();
        for native in natives.iter_mut() {
            let tool = native.offered().name().to_string();
            if let Some(internal) = &mut native.internal
                && internal.stage == Stage::Registered
                && hosted
                    .attempts
                    .values()
                    .any(|a| a.is_overdue(now) && a.occupies(&internal.tool))
            {
                internal.stage = Stage::Failed;
                let message = "a former start of it has not ended; it is left out".to_owned();
                tracing::warn!(tool, message, "an internal tool is out");
                let failure = Diagnostic { tool, message };
                hosted.failures.push((internal.sequence, failure.clone()));
                failed.push(failure);
            }
        }
        failed
    }

    /// Records that a tool is up, unless that comes too late: then it must be shut down.
    fn succeed(&self, claim: &Claim) -> bool {
        let now = Instant::now();
        let mut state = self.lock();
        let Some(attempt) = state.hosted.attempts.get_mut(&claim.attempt) else {
            return false;
        };
        if !attempt.is_open || attempt.deadline.is_some_and(|deadline| deadline < now) {
            // From here on the limit of `shutdown` holds.
            attempt.deadline = None;
            return false;
        }
        state.hosted.close(claim.attempt);
        if let Some(internal) = internal(&mut state, claim.sequence) {
            internal.stage = Stage::Started;
            state.changed();
        }
        // Also if it was removed meanwhile: what was started must be shut down.
        state.hosted.started.push(claim.clone());
        drop(state);
        self.lifecycle.send_replace(());
        true
    }

    /// Records that a tool did not start. If somebody has done so already, theirs is the word.
    fn fail(&self, claim: &Claim, message: String) -> Option<Diagnostic> {
        let mut state = self.lock();
        if !state.hosted.close(claim.attempt) {
            let mut failures = state.hosted.failures.iter();
            let known = failures.find(|(sequence, _)| *sequence == claim.sequence);
            return known.map(|(_, failure)| failure.clone());
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
        if let Some(internal) = internal(&mut state, claim.sequence) {
            internal.stage = Stage::Failed;
            let failures = &mut state.hosted.failures;
            failures.push((claim.sequence, failure.clone()));
        }
        drop(state);
        self.lifecycle.send_replace(());
        Some(failure)
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
        let mut state = self.lock();
        let started = &mut state.hosted.started;
        let last = started
            .iter()
            .enumerate()
            .max_by_key(|(_, claim)| claim.sequence)
            .map(|(at, _)| at)?;
        let claim = started.remove(last);
        // It may have come up after the others were taken out of the offer.
        if let Some(internal) = internal(&mut state, claim.sequence)
            && internal.stage == Stage::Started
        {
            internal.stage = Stage::Stopped;
            state.changed();
        }
        Some(claim)
    }
}

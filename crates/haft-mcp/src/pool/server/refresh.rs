//! Reading the list of a server: at once from what is known, and anew in the background.
//!
//! A list that is known is returned without waiting for a server that is slow, hangs or is down. What is newer
//! arrives by a notice of changes. A server that failed is not asked again before its backoff has passed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::{Server, is_gone, locked};
use crate::error::McpError;
use crate::pool::tools::ServerTools;

/// How long a caller that has an older list waits for the newer one of a server that is connected.
const NEWER_LIST_WAIT: Duration = Duration::from_secs(2);

impl Server {
    /// The tools that are known now, without waiting. If the list is not fresh, it is read anew in the
    /// background; [`Pool::changes`](crate::Pool::changes) reports what is different then.
    pub fn tools_now(self: &Arc<Self>) -> Option<Arc<ServerTools>> {
        self.touch();
        if let Some(tools) = self.fresh_tools() {
            return Some(tools);
        }
        self.refresh_in_background();
        self.known_tools()
    }

    /// The tools that are known now. Only where nothing is known yet, the first list is waited for: until
    /// `wait` after the first such request in this process, however many requests there are, and no longer
    /// than the attempt to read it lasts.
    pub async fn tools_or_first(self: &Arc<Self>, wait: Duration) -> Option<Arc<ServerTools>> {
        let mut refreshes = self.refreshes.subscribe();
        if let Some(tools) = self.tools_now() {
            return Some(tools);
        }
        let until = {
            let mut until = locked(&self.first_wait_until);
            *until.get_or_insert_with(|| Instant::now() + wait)
        };
        while self.is_refreshing() && self.known_tools().is_none() {
            match tokio::time::timeout_at(until, refreshes.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => break,
            }
        }
        self.known_tools()
    }

    /// The tools. Where a list is known, it is the answer, after two seconds at most in which a connected
    /// server may give a newer one. Where none is known the server is connected to, and an error says why
    /// that failed: at once if it failed a moment ago.
    pub async fn tools(self: &Arc<Self>) -> Result<Arc<ServerTools>, McpError> {
        self.touch();
        if let Some(tools) = self.fresh_tools() {
            return Ok(tools);
        }
        // An empty list is no answer as long as a newer one can be had.
        let known = self.known_tools().filter(|it| !it.tools.is_empty());
        let failure = self.recent_failure();
        let wait = match (&known, &failure) {
            (Some(_), _) if !self.answers_soon() => Some(Duration::ZERO),
            (None, None) => None,
            _ => Some(NEWER_LIST_WAIT),
        };
        if wait == Some(Duration::ZERO) {
            self.refresh_in_background();
        } else if let Some(answer) = self.refreshed_within(wait).await {
            match (answer, &known) {
                (Err(error), Some(_)) => {
                    tracing::warn!(server = %self.label(), %error, "failed to refresh the list of tools; the known list is used");
                }
                (answer, _) => return answer,
            }
        }
        match (known, failure) {
            (Some(known), _) => Ok(known),
            (None, Some(error)) => Err(error),
            // The runtime is shutting down, for nothing limited the wait.
            (None, None) => Ok(Arc::default()),
        }
    }

    /// Reads the tools anew in a task that outlives the caller; none if that takes longer than `wait`.
    async fn refreshed_within(
        self: &Arc<Self>,
        wait: Option<Duration>,
    ) -> Option<Result<Arc<ServerTools>, McpError>> {
        let pause = self.refresh_pause();
        if let Some(wait) = wait
            && pause > wait
        {
            return None;
        }
        let server = Arc::clone(self);
        let refreshing = tokio::spawn(async move { server.refresh().await });
        let answer = match wait {
            Some(wait) => tokio::time::timeout(wait, refreshing).await.ok()?,
            None => refreshing.await,
        };
        answer.ok()
    }

    /// Reads the tools anew, now. What is known from before stays where that fails.
    pub async fn refresh(self: &Arc<Self>) -> Result<Arc<ServerTools>, McpError> {
        let asked_at = Instant::now();
        let _lock = self.refreshing.lock().await;
        // A refresh that ended while this one waited for the lock began late enough, or failed just now.
        if let Some(tools) = self.read_since(asked_at) {
            return Ok(tools);
        }
        let failures = [self.connect_failure(), self.list_failure()];
        let failed = failures.into_iter().flatten();
        if let Some(failure) = failed.into_iter().find(|it| it.failed_at > asked_at) {
            return Err(failure.error);
        }
        let _refreshing = Refreshing::new(self);
        let mut connection = self.connection().await?;
        let list = match self.list_over(&connection).await {
            Err(error) if is_gone(&error) => {
                self.discard(&connection);
                connection = self.connection().await?;
                self.list_over(&connection).await
            }
            answer => answer,
        };
        match list {
            Ok(list) => {
                locked(&self.list_attempts).succeeded();
                Ok(self.take_list(list, connection.era()).await)
            }
            Err(error) => {
                locked(&self.list_attempts).failed(&error, Instant::now());
                if is_gone(&error) {
                    self.discard(&connection);
                }
                Err(error)
            }
        }
    }

    /// Starts to read the list anew, unless that is under way, failed a moment ago, or the server is retired.
    fn refresh_in_background(self: &Arc<Self>) {
        if self.is_retired() || !self.refresh_pause().is_zero() {
            return;
        }
        if self.is_refresh_queued.swap(true, Ordering::AcqRel) {
            return;
        }
        let queued = Queued(Arc::clone(self));
        tokio::spawn(async move {
            if let Err(error) = queued.0.refresh().await {
                tracing::warn!(server = %queued.0.label(), %error, "failed to read the list of tools");
            }
        });
    }

    fn is_refreshing(&self) -> bool {
        self.is_refresh_queued.load(Ordering::Acquire) || locked(&self.refreshing_since).is_some()
    }

    /// Whether a newer list can be expected within moments: the server is connected, and no refresh is late
    /// or has just failed.
    fn answers_soon(&self) -> bool {
        let since = *locked(&self.refreshing_since);
        let is_late = since.is_some_and(|at| at.elapsed() > NEWER_LIST_WAIT);
        self.connected().is_some() && !is_late && self.refresh_pause().is_zero()
    }

    /// The time until the list may be asked for again after a failure.
    fn refresh_pause(&self) -> Duration {
        let now = Instant::now();
        let connecting = locked(&self.attempts).pause(now);
        connecting.max(locked(&self.list_attempts).pause(now))
    }

    /// Why the last attempt to connect or to list failed, if it did.
    fn recent_failure(&self) -> Option<McpError> {
        let failure = self.connect_failure().or_else(|| self.list_failure());
        failure.map(|it| it.error)
    }
}

/// A refresh in the background. Its end is reported also if the task panics or is dropped.
struct Queued(Arc<Server>);

impl Drop for Queued {
    fn drop(&mut self) {
        self.0.is_refresh_queued.store(false, Ordering::Release);
        self.0.refreshes.send_modify(|count| *count += 1);
    }
}

/// Marks a refresh while it lasts.
struct Refreshing<'a>(&'a Server);

impl<'a> Refreshing<'a> {
    fn new(server: &'a Server) -> Self {
        *locked(&server.refreshing_since) = Some(Instant::now());
        Self(server)
    }
}

impl Drop for Refreshing<'_> {
    fn drop(&mut self) {
        *locked(&self.0.refreshing_since) = None;
        self.0.refreshes.send_modify(|count| *count += 1);
    }
}

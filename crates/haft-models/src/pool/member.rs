//! One backend of a pool: its name, its breaker, and the visits that it gets.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use haft_core::{Model, ModelError, ModelErrorKind};

use super::verdict::{self, Verdict};
use super::{Blocked, Breaker, BreakerSettings, Change, HealthSettings, Pass, Standing};
use crate::{Backend, OpenAiChat};

/// A backend under its name, with the breaker that it has in whatever pool it is.
///
/// ```
/// use haft_models::pool::{BreakerSettings, Member, Standing};
/// use haft_models::{Backend, OfflineModel};
/// use std::sync::Arc;
/// let backend = Backend::from(Arc::new(OfflineModel::new()) as Arc<dyn haft_core::Model>);
/// let member = Member::new("offline", backend).breaker(BreakerSettings::default());
/// assert_eq!(member.standing(), Standing::Ready);
/// ```
pub struct Member {
    name: Arc<str>,
    backend: Backend,
    health: Option<HealthSettings>,
    breaker: Mutex<Breaker>,
}

impl Member {
    /// A backend under this name, always asked.
    pub fn new(name: impl Into<Arc<str>>, backend: Backend) -> Self {
        Self {
            name: name.into(),
            backend,
            health: None,
            breaker: Mutex::new(Breaker::new(BreakerSettings::off())),
        }
    }

    /// Leaves it alone when it fails, by these rules.
    #[must_use]
    pub fn breaker(mut self, settings: BreakerSettings) -> Self {
        self.breaker = Mutex::new(Breaker::new(settings));
        self
    }

    /// Asks it now and then how it is, where somebody [`watch`](super::watch)es.
    #[must_use]
    pub fn health(mut self, settings: HealthSettings) -> Self {
        self.health = Some(settings);
        self
    }

    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// How it stands.
    pub fn standing(&self) -> Standing {
        self.state().standing(now())
    }

    pub(super) fn model(&self) -> &Arc<dyn Model> {
        self.backend.model()
    }

    pub(super) fn chat(&self) -> Option<&Arc<OpenAiChat>> {
        self.backend.chat()
    }

    pub(super) fn backend(&self) -> &Backend {
        &self.backend
    }

    pub(super) fn health_settings(&self) -> Option<HealthSettings> {
        self.health
    }

    /// Lets a request in, or says how long not.
    pub(super) fn visit(self: &Arc<Self>) -> Result<Visit, Blocked> {
        let pass = self.state().admit(now())?;
        Ok(Visit {
            member: Arc::clone(self),
            pass: Some(pass),
        })
    }

    /// Takes in what a question after its health came to.
    pub(super) fn found(&self, asked: &Result<(), ModelError>, again: std::time::Duration) {
        let change = match asked {
            Ok(()) => self.state().found_well(),
            Err(_) => self.state().found_unwell(now(), again),
        };
        self.tell(change);
    }

    fn state(&self) -> MutexGuard<'_, Breaker> {
        // Nothing is half-changed if somebody panicked.
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, change: Change) {
        let backend = &*self.name;
        match change {
            Change::Nothing => {}
            Change::Opened(wait) => {
                let seconds = wait.as_secs_f64();
                tracing::warn!(
                    backend,
                    seconds,
                    "a backend keeps failing: it is left alone"
                );
            }
            Change::Closed => tracing::info!(backend, "a backend is asked again"),
        }
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("name", &self.name)
            .field("backend", &self.backend)
            .finish_non_exhaustive()
    }
}

/// The time, as tests may hold it.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// One request at a backend. The breaker hears what came of it, or that nobody waited.
#[derive(Debug)]
pub(super) struct Visit {
    member: Arc<Member>,
    /// Gone when the breaker has heard.
    pass: Option<Pass>,
}

impl Visit {
    pub(super) fn member(&self) -> &Arc<Member> {
        &self.member
    }

    /// Something of an answer came.
    pub(super) fn began(&self) {
        if let Some(pass) = &self.pass {
            let change = self.member.state().began(pass);
            self.member.tell(change);
        }
    }

    /// All of it came.
    pub(super) fn succeeded(&mut self) {
        if let Some(pass) = self.pass.take() {
            let change = self.member.state().succeeded(pass);
            self.member.tell(change);
        }
    }

    /// It failed.
    pub(super) fn failed(&mut self, error: &ModelError) {
        let Some(pass) = self.pass.take() else { return };
        self.tell(error);
        let mut state = self.member.state();
        let wait = error.retry_after;
        let change = match verdict::of(error) {
            Verdict::Fault => state.failed(pass, now(), wait),
            Verdict::Rests => state.rests(pass, now(), wait),
            Verdict::Alive => state.succeeded(pass),
            Verdict::Nothing => {
                state.abandoned(pass);
                Change::Nothing
            }
        };
        drop(state);
        self.member.tell(change);
    }
}

impl Visit {
    /// Logs what is wrong with the backend, for its operator. What a provider says is left out, as it may
    /// quote what it was sent; what happened on the way there is logged in full.
    fn tell(&self, error: &ModelError) {
        let backend = &**self.member.name();
        let model = self.member.model().name();
        let url = self.member.backend().base_url();
        let (kind, status) = (error.kind, error.status);
        let note = error.operator_note.as_deref();
        match (verdict::of(error), kind) {
            (_, ModelErrorKind::Unreachable) => {
                let reason = &*error.message;
                tracing::warn!(backend, model, url, ?kind, reason, note, "a backend failed");
            }
            (_, ModelErrorKind::RateLimit) => {
                tracing::info!(
                    backend,
                    model,
                    url,
                    ?kind,
                    status,
                    note,
                    "a backend limits requests"
                );
            }
            (Verdict::Fault | Verdict::Rests, _) | (_, ModelErrorKind::Misconfigured) => {
                tracing::warn!(backend, model, url, ?kind, status, note, "a backend failed");
            }
            (Verdict::Alive, _) => {
                tracing::info!(
                    backend,
                    model,
                    url,
                    ?kind,
                    status,
                    note,
                    "a backend rejected a request"
                );
            }
            (Verdict::Nothing, _) => {}
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if let Some(pass) = self.pass.take() {
            self.member.state().abandoned(pass);
        }
    }
}

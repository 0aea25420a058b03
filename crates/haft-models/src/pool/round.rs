//! Who is asked with one request, one after the other, and what is said when nobody answered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use haft_core::{ModelError, ModelErrorKind};

use super::member::Visit;
use super::{Absence, Failover, Member, Standing, Witness, verdict};

/// How an error that comes of a breaker is called.
const CODE: &str = "backend_left_alone";

/// The way of one request through the backends.
pub(super) struct Round<'p> {
    members: &'p [Arc<Member>],
    left: VecDeque<usize>,
    /// Those that are asked only if nobody else is.
    resting: VecDeque<usize>,
    failures: Vec<(usize, ModelError)>,
    /// Those that let nobody in.
    blocked: Vec<usize>,
    /// The shortest time after which one that was not asked may be.
    wait: Option<Duration>,
}

impl<'p> Round<'p> {
    /// Through those of the members that may take part, in their order; the one that the
    /// conversation stays with goes first while it is well.
    pub(super) fn new(
        members: &'p [Arc<Member>],
        stays_with: Option<usize>,
        takes_part: impl Fn(&Member) -> bool,
    ) -> Self {
        let mut round = Self {
            members,
            left: VecDeque::new(),
            resting: VecDeque::new(),
            failures: Vec::new(),
            blocked: Vec::new(),
            wait: None,
        };
        for (at, member) in members.iter().enumerate() {
            if !takes_part(member) {
                continue;
            }
            match member.standing() {
                // A pool of one has nobody to prefer.
                Standing::Resting(_) if members.len() > 1 => round.resting.push_back(at),
                Standing::Ready if stays_with == Some(at) => round.left.push_front(at),
                _ => round.left.push_back(at),
            }
        }
        round
    }

    /// The next one who lets a request in and can take it.
    pub(super) fn next(&mut self, can_take: impl Fn(&Member) -> bool) -> Option<(usize, Visit)> {
        loop {
            if self.left.is_empty() && self.failures.is_empty() {
                self.left = std::mem::take(&mut self.resting);
            }
            let at = self.left.pop_front()?;
            let member = &self.members[at];
            // The first is the one that the request was made for.
            if at != 0 && !can_take(member) {
                tracing::debug!(
                    backend = &**member.name(),
                    "a backend cannot take the request"
                );
                continue;
            }
            match member.visit() {
                Ok(visit) => {
                    self.tell(member);
                    return Some((at, visit));
                }
                Err(blocked) => {
                    self.blocked.push(at);
                    let wait = self.wait.map_or(blocked.wait, |it| it.min(blocked.wait));
                    self.wait = Some(wait);
                }
            }
        }
    }

    /// Whether nobody follows whom [`next`](Self::next) gave last.
    pub(super) fn is_last(&self) -> bool {
        self.left.is_empty()
    }

    /// Takes in that one failed. The error comes back if no other could do better.
    pub(super) fn failed(
        &mut self,
        at: usize,
        mut visit: Visit,
        error: ModelError,
    ) -> Result<(), ModelError> {
        visit.failed(&error);
        if !verdict::is_curable(&error) {
            return Err(error);
        }
        self.failures.push((at, error));
        Ok(())
    }

    /// Says that another is asked in place of one that failed.
    fn tell(&self, next: &Member) {
        if let Some((at, _)) = self.failures.last() {
            let (backend, next) = (&**self.members[*at].name(), &**next.name());
            tracing::info!(backend, next, "another backend is asked");
        }
    }

    /// Tells whoever listens who failed before this one answered, and who was not even asked.
    pub(super) fn tell_failures(&self, answered: usize, witness: Option<&Witness>) {
        let Some(witness) = witness else { return };
        let passed_over = self.blocked.iter().chain(&self.resting);
        let passed_over = passed_over.filter(|at| **at < answered);
        let passed_over = passed_over.map(|at| (*at, Absence::LeftAlone));
        let failures = self.failures.iter();
        let failures = failures.map(|(at, error)| (*at, Absence::Failed(error.kind)));
        for (at, why) in passed_over.chain(failures) {
            witness.hear_failure(Failover {
                from: Arc::clone(self.members[at].name()),
                to: Arc::clone(self.members[answered].name()),
                why,
            });
        }
    }

    /// What is said when nobody answered: the first failure that may pass, else the first.
    pub(super) fn end(mut self) -> ModelError {
        let others = self.failures.len().saturating_sub(1);
        if self.failures.is_empty() {
            return self.nobody();
        }
        // Whoever waits must be able to wait for all of them, else there is no use in it.
        let waits = self.failures.iter().map(|(_, error)| error.retry_after);
        let wait = waits.min().flatten();
        let told = self.failures.iter();
        let told = told.map(|(_, error)| error.kind.is_retryable());
        let at = told.into_iter().position(|may_pass| may_pass).unwrap_or(0);
        let (_, mut error) = self.failures.swap_remove(at);
        if others > 0 {
            error.retry_after = wait;
            let more = if others == 1 {
                String::from("another backend")
            } else {
                format!("{others} other backends")
            };
            error.message = format!("{} ({more} failed as well)", error.message);
        }
        error
    }

    fn nobody(&self) -> ModelError {
        let wait = self.wait.unwrap_or(Duration::from_secs(1));
        let words = format!(
            "it failed too often and is left alone: try again in {:.1}s",
            wait.as_secs_f64()
        );
        ModelError::new(ModelErrorKind::Unreachable, words)
            .with_code(CODE)
            .retry_after(wait)
    }
}

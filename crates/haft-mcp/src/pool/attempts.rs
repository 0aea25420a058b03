//! When a server that could not be reached is tried again.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::McpError;

/// The first and the longest wait between two attempts.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// So many failures in so long a time, and the server is given up for a while.
const GIVE_UP_AFTER: usize = 5;
const WITHIN: Duration = Duration::from_mins(5);

/// A wait that is short enough to be waited for in the midst of a call.
const PATIENCE: Duration = Duration::from_secs(2);

/// What became of the attempts to reach a server.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    failures: Vec<Instant>,
    last: Option<Failure>,
}

/// The last attempt, which failed.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) error: McpError,
    pub(super) failed_at: Instant,
    pub(super) retry_at: Instant,
}

/// Whether to try now.
#[derive(Debug)]
pub(super) enum Advice {
    /// Yes.
    Now,
    /// Yes, after this.
    After(Duration),
    /// No: it ended like this a moment ago.
    NotYet(McpError),
}

impl Attempts {
    pub(super) fn advice(&self, now: Instant) -> Advice {
        match &self.last {
            None => Advice::Now,
            Some(failure) => match failure.retry_at.checked_duration_since(now) {
                None | Some(Duration::ZERO) => Advice::Now,
                Some(wait) if wait <= PATIENCE => Advice::After(wait),
                Some(_) => Advice::NotYet(failure.error.clone()),
            },
        }
    }

    /// How long to wait until the next attempt makes sense.
    pub(super) fn pause(&self, now: Instant) -> Duration {
        let last = self.last.as_ref();
        last.map_or(Duration::ZERO, |it| it.retry_at.duration_since(now))
    }

    pub(super) fn failed(&mut self, error: &McpError, now: Instant) {
        self.failures.retain(|at| now.duration_since(*at) < WITHIN);
        self.failures.push(now);
        let wait = if error.cause.is_lasting() || self.failures.len() > GIVE_UP_AFTER {
            LONGEST_WAIT
        } else {
            let doublings = u32::try_from(self.failures.len() - 1).unwrap_or(u32::MAX);
            let wait = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(doublings));
            // A server that hangs takes as long to fail: whoever waited for that does not wait again at once.
            wait.max(error.elapsed).min(LONGEST_WAIT)
        };
        self.last = Some(Failure {
            error: error.clone(),
            failed_at: now,
            // Servers that went down together do not come back in step.
            retry_at: now + wait.mul_f64(0.8 + 0.4 * fastrand::f64()),
        });
    }

    pub(super) fn succeeded(&mut self) {
        self.last = None;
    }

    /// Lets the next attempt be made at once.
    pub(super) fn forgive(&mut self) {
        *self = Self::default();
    }

    pub(super) fn last(&self) -> Option<&Failure> {
        self.last.as_ref()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::error::{Cause, Phase, TransportKind};
    use crate::names::Label;

    fn error(cause: Cause) -> McpError {
        McpError {
            server: Label::new("files").unwrap(),
            transport: TransportKind::Stdio,
            era: None,
            phase: Phase::Spawn,
            elapsed: Duration::ZERO,
            cause: Box::new(cause),
            stderr: String::new(),
        }
    }

    #[test]
    fn waits_grow_to_a_minute_and_short_ones_are_waited_for() {
        let lost = error(Cause::Unreachable("refused".into()));
        let mut attempts = Attempts::default();
        let mut now = Instant::now();
        assert!(matches!(attempts.advice(now), Advice::Now));
        let mut waits = Vec::new();
        for _ in 0..9 {
            attempts.failed(&lost, now);
            let pause = attempts.pause(now);
            waits.push(pause.as_secs_f64());
            now += pause;
            assert!(matches!(attempts.advice(now), Advice::Now));
        }
        for (wait, expected) in waits
            .iter()
            .zip([1.0, 2.0, 4.0, 8.0, 16.0, 60.0, 60.0, 60.0])
        {
            assert!((wait / expected - 1.0).abs() <= 0.21, "{waits:?}");
        }
        attempts.succeeded();
        attempts.failed(&lost, now + WITHIN);
        assert!(matches!(attempts.advice(now + WITHIN), Advice::After(_)));
    }

    #[test]
    fn what_lasts_is_not_tried_again_for_a_while_and_told_at_once() {
        let missing = error(Cause::NotStarted {
            command: "nope".into(),
            reason: "not found".into(),
        });
        let mut attempts = Attempts::default();
        let now = Instant::now();
        attempts.failed(&missing, now);
        let Advice::NotYet(told) = attempts.advice(now + Duration::from_secs(40)) else {
            panic!("it is tried again");
        };
        assert_eq!(told, missing);
        attempts.forgive();
        assert!(matches!(attempts.advice(now), Advice::Now));
    }
}

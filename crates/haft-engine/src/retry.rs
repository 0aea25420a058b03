//! When a failed model request is made again, and after how long.
//!
//! What comes in: one failed attempt, with what was waited already and how much time is left. What
//! goes out: a delay, or that it is over. A policy decides by these alone; it must never sleep, look
//! at a clock or throw dice of its own, so that a run can be replayed. Tools are never retried.

use std::time::Duration;

use haft_core::ModelError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Decides about retries. Plug in your own for a provider with other habits.
pub trait RetryPolicy: Send + Sync {
    /// How long to wait before the next attempt; `None` gives up.
    fn delay(&self, attempt: &FailedAttempt<'_>) -> Option<Duration>;
}

/// A model request that failed before it delivered anything.
#[derive(Debug, Clone, Copy)]
pub struct FailedAttempt<'a> {
    /// Which retry would come next: 1 after the first attempt.
    pub retry: u32,
    /// Why it failed.
    pub error: &'a ModelError,
    /// How long the attempts of this request have waited for each other so far.
    pub waited: Duration,
    /// How long the attempts themselves took so far.
    pub spent: Duration,
    /// How long until the run's deadline, if it has one.
    pub remaining: Option<Duration>,
    /// A random number in `[0, 1)`.
    pub random: f64,
}

/// The default: exponential, with jitter, and bounded in number and time.
///
/// Retry n waits between `base` and `base · 2ⁿ`, at most `cap`, and never less than the provider
/// asks for. It gives up after `attempts` attempts, where the waits of one request would sum to more
/// than `total`, and where the deadline would come first. Attempts that take long themselves count as
/// well, but for the first: whoever waited for minutes in vain is asked to do so only once again.
///
/// In configuration, durations are texts such as `"500ms"` or `"8s"`, or whole milliseconds.
///
/// ```
/// use haft_core::{ModelError, ModelErrorKind};
/// use haft_engine::{Backoff, FailedAttempt, RetryPolicy};
/// use std::time::Duration;
///
/// let error = ModelError::new(ModelErrorKind::ServerError, "overloaded");
/// let first = FailedAttempt {
///     retry: 1,
///     error: &error,
///     waited: Duration::ZERO,
///     spent: Duration::ZERO,
///     remaining: None,
///     random: 0.5,
/// };
/// assert_eq!(Backoff::default().delay(&first), Some(Duration::from_millis(750)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Backoff {
    /// How many attempts in all, the first one included.
    pub attempts: u32,
    /// The shortest wait.
    #[serde(with = "crate::duration")]
    #[schemars(with = "crate::duration::Written")]
    pub base: Duration,
    /// The longest wait that is chosen here.
    #[serde(with = "crate::duration")]
    #[schemars(with = "crate::duration::Written")]
    pub cap: Duration,
    /// The longest time that one request waits in all.
    #[serde(with = "crate::duration")]
    #[schemars(with = "crate::duration::Written")]
    pub total: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            attempts: 5,
            base: Duration::from_millis(500),
            cap: Duration::from_secs(8),
            total: Duration::from_secs(30),
        }
    }
}

impl Backoff {
    /// Never again.
    pub fn none() -> Self {
        Self {
            attempts: 1,
            ..Self::default()
        }
    }
}

impl RetryPolicy for Backoff {
    fn delay(&self, attempt: &FailedAttempt<'_>) -> Option<Duration> {
        if !attempt.error.kind.is_retryable() || attempt.retry >= self.attempts {
            return None;
        }
        let shortest = self.base.min(self.cap);
        let factor = 2_u32.saturating_pow(attempt.retry);
        let longest = self.base.saturating_mul(factor).min(self.cap);
        // `clamp` passes NaN on, and no duration can be multiplied by it.
        let random = Some(attempt.random.clamp(0.0, 1.0)).filter(|random| !random.is_nan());
        let chosen = shortest
            + longest
                .saturating_sub(shortest)
                .mul_f64(random.unwrap_or(0.0));
        let delay = chosen.max(attempt.error.retry_after.unwrap_or_default());
        let in_time = attempt.remaining.is_none_or(|remaining| delay < remaining);
        let waits = attempt.waited.saturating_add(delay);
        let all = waits.saturating_add(attempt.spent);
        let in_total = waits <= self.total && (attempt.retry == 1 || all <= self.total);
        (in_time && in_total).then_some(delay)
    }
}

#[cfg(test)]
mod tests {
    use haft_core::ModelErrorKind;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn failed(error: &ModelError, retry: u32, random: f64) -> FailedAttempt<'_> {
        FailedAttempt {
            retry,
            error,
            waited: Duration::ZERO,
            spent: Duration::ZERO,
            remaining: None,
            random,
        }
    }

    #[test]
    fn the_wait_grows_from_base_to_cap() {
        let error = ModelError::new(ModelErrorKind::RateLimit, "slow down");
        for (retry, longest) in [(1, 1000), (2, 2000), (3, 4000), (4, 8000)] {
            let delay = |random| Backoff::default().delay(&failed(&error, retry, random));
            assert_eq!(delay(0.0), Some(Duration::from_millis(500)), "{retry}");
            assert_eq!(delay(1.0), Some(Duration::from_millis(longest)), "{retry}");
        }
        let patient = Backoff {
            attempts: u32::MAX,
            ..Backoff::default()
        };
        for retry in [5, 31, 32, 1000] {
            assert_eq!(patient.delay(&failed(&error, retry, 1.0)), Some(8 * SECOND));
        }
    }

    #[test]
    fn the_fifth_attempt_is_the_last() {
        let error = ModelError::new(ModelErrorKind::Timeout, "late");
        assert!(Backoff::default().delay(&failed(&error, 4, 0.0)).is_some());
        assert_eq!(Backoff::default().delay(&failed(&error, 5, 0.0)), None);
        assert_eq!(Backoff::none().delay(&failed(&error, 1, 0.0)), None);
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        use ModelErrorKind::*;
        let tried_again = |kind| {
            let error = ModelError::new(kind, "x");
            Backoff::default().delay(&failed(&error, 1, 0.0)).is_some()
        };
        for kind in [RateLimit, Timeout, ServerError, Unreachable] {
            assert!(tried_again(kind), "{kind:?}");
        }
        for kind in [
            QuotaExhausted,
            Unauthorized,
            NotFound,
            ContextLength,
            PromptRefused,
            InvalidRequest,
            Protocol,
        ] {
            assert!(!tried_again(kind), "{kind:?}");
        }
    }

    #[test]
    fn the_provider_is_never_asked_sooner_than_it_says() {
        let error = ModelError::new(ModelErrorKind::RateLimit, "x").retry_after(12 * SECOND);
        assert_eq!(
            Backoff::default().delay(&failed(&error, 1, 0.9)),
            Some(12 * SECOND)
        );
        let far = ModelError::new(ModelErrorKind::RateLimit, "x").retry_after(31 * SECOND);
        assert_eq!(Backoff::default().delay(&failed(&far, 1, 0.0)), None);
    }

    #[test]
    fn all_waits_together_stay_within_the_total() {
        let error = ModelError::new(ModelErrorKind::RateLimit, "x").retry_after(12 * SECOND);
        let after = |waited| {
            Backoff::default().delay(&FailedAttempt {
                waited,
                ..failed(&error, 3, 0.0)
            })
        };
        assert_eq!(after(18 * SECOND), Some(12 * SECOND));
        assert_eq!(after(19 * SECOND), None);
    }

    #[test]
    fn attempts_that_take_long_are_made_once_again_and_no_more() {
        let error = ModelError::new(ModelErrorKind::Timeout, "x");
        let after = |retry, seconds| {
            Backoff::default().delay(&FailedAttempt {
                spent: seconds * SECOND,
                ..failed(&error, retry, 0.0)
            })
        };
        assert!(after(1, 300).is_some());
        assert_eq!(after(2, 600), None);
        assert!(after(2, 10).is_some(), "as long as there is time");
    }

    #[test]
    fn it_gives_up_at_once_where_the_deadline_comes_first() {
        let error = ModelError::new(ModelErrorKind::ServerError, "x");
        let within = |remaining| {
            Backoff::default().delay(&FailedAttempt {
                remaining: Some(remaining),
                ..failed(&error, 1, 0.0)
            })
        };
        assert_eq!(within(Duration::from_millis(500)), None);
        assert!(within(Duration::from_millis(501)).is_some());
        assert_eq!(within(Duration::ZERO), None);
    }

    #[test]
    fn odd_numbers_do_no_harm() {
        let error = ModelError::new(ModelErrorKind::ServerError, "x");
        for random in [f64::NAN, f64::INFINITY, -1.0, 7.0] {
            let delay = Backoff::default()
                .delay(&failed(&error, 1, random))
                .unwrap();
            assert!(delay >= SECOND / 2 && delay <= SECOND, "{random}");
        }
        let capped_below_base = Backoff {
            cap: SECOND / 10,
            ..Backoff::default()
        };
        let delay = capped_below_base.delay(&failed(&error, 1, 1.0));
        assert_eq!(delay, Some(SECOND / 10));
    }

    #[test]
    fn configuration_takes_texts_and_milliseconds() {
        let read: Backoff =
            serde_json::from_str(r#"{"attempts": 2, "base": "1s", "cap": 1500}"#).unwrap();
        let expected = Backoff {
            attempts: 2,
            base: SECOND,
            cap: Duration::from_millis(1500),
            total: 30 * SECOND,
        };
        assert_eq!(read, expected);
        let written = serde_json::to_value(expected).unwrap();
        assert_eq!(written["cap"], "1s 500ms");
        assert_eq!(serde_json::from_value::<Backoff>(written).unwrap(), read);
        let error = serde_json::from_str::<Backoff>(r#"{"base": "soon"}"#).unwrap_err();
        assert!(
            error.to_string().contains("`soon` is no duration"),
            "{error}"
        );
        let error = serde_json::from_str::<Backoff>(r#"{"base": -5}"#).unwrap_err();
        assert!(error.to_string().contains("500ms"), "{error}");
    }
}

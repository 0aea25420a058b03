//! When a backend is asked, and when it is left alone.
//!
//! A state machine without a clock: whoever holds it says what time it is. *Closed*: everybody may
//! ask. *Open*: nobody may, for a time that grows with every opening that follows another. *Trial*:
//! the time is over and one request finds out how the backend is.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;

/// How long others wait while one request finds out how the backend is. When that one ends is not
/// known.
const TRIAL_WAIT: Duration = Duration::from_secs(1);

/// The longest time that can be asked for.
pub(crate) const LONGEST: Duration = Duration::from_hours(24);

/// When a breaker opens, and for how long.
///
/// In configuration, durations are texts such as `"500ms"` or `"2m"`, or whole milliseconds.
///
/// ```
/// use haft_models::pool::BreakerSettings;
/// let settings: BreakerSettings = serde_json::from_str(r#"{"failures": 3, "open": "1s"}"#)?;
/// assert_eq!((settings.failures, settings.longest.as_secs()), (3, 120));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BreakerSettings {
    /// Whether it opens at all.
    pub enabled: bool,
    /// After so many failures without a success between them it opens.
    pub failures: u32,
    /// For so long the first time, and twice as long each time that follows.
    #[serde(with = "crate::config::duration")]
    #[schemars(with = "crate::config::duration::Written")]
    pub open: Duration,
    /// The longest that it stays open.
    #[serde(with = "crate::config::duration")]
    #[schemars(with = "crate::config::duration::Written")]
    pub longest: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            failures: 5,
            open: Duration::from_secs(10),
            longest: Duration::from_mins(2),
        }
    }
}

impl BreakerSettings {
    /// One that never opens.
    pub fn off() -> Self {
        Self {
            enabled: false,
            ..Self::default()
        }
    }

    /// The member that makes no sense, and why.
    pub fn fault(&self) -> Option<(&'static str, &'static str)> {
        if self.failures == 0 {
            Some((
                "failures",
                "it must be at least 1; `enabled = false` switches the breaker off",
            ))
        } else if self.open.is_zero() {
            Some(("open", "it must be more than nothing"))
        } else if self.longest < self.open {
            Some(("longest", "it must not be shorter than `open`"))
        } else if self.longest > LONGEST {
            Some(("longest", "it must not be longer than a day"))
        } else {
            None
        }
    }
}

/// Counts a backend's failures and says whether it may be asked.
///
/// ```
/// use haft_models::pool::{Breaker, BreakerSettings, Standing};
/// use std::time::{Duration, Instant};
///
/// let now = Instant::now();
/// let mut breaker = Breaker::new(BreakerSettings { failures: 1, ..Default::default() });
/// let pass = breaker.admit(now)?;
/// breaker.failed(pass, now, None);
/// assert_eq!(breaker.standing(now), Standing::Open(Duration::from_secs(10)));
/// assert_eq!(breaker.admit(now).unwrap_err().wait, Duration::from_secs(10));
/// assert!(breaker.admit(now + Duration::from_secs(10)).is_ok(), "a trial");
/// # Ok::<(), haft_models::pool::Blocked>(())
/// ```
#[derive(Debug)]
pub struct Breaker {
    settings: BreakerSettings,
    state: State,
    /// How often it has opened since the last whole success.
    openings: u32,
    /// How often it has opened at all: news of requests from before the last time are old.
    epoch: u64,
    /// The backend said that it wants to be left alone until then.
    resting: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed { failures: u32 },
    Open { until: Instant },
    Trial { until: Instant },
}

/// A right to ask once. What came of it is told to the breaker that gave it.
#[derive(Debug)]
#[must_use = "the breaker waits for what comes of it"]
pub struct Pass {
    epoch: u64,
    is_trial: bool,
}

/// The backend is not to be asked now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the backend is not asked for another {wait:?}")]
pub struct Blocked {
    /// How long not.
    pub wait: Duration,
}

/// How a backend stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// It is asked.
    Ready,
    /// It is asked if there is nobody else, for so long: it limits requests, or refuses the key.
    Resting(Duration),
    /// It is not asked for so long.
    Open(Duration),
    /// The next request finds out how it is.
    Due,
    /// A request is finding out how it is; no other is let through.
    Trying,
}

impl Standing {
    /// Whether the next request would be let through.
    pub fn is_usable(self) -> bool {
        matches!(self, Self::Ready | Self::Resting(_) | Self::Due)
    }
}

/// What a report changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing to speak of.
    Nothing,
    /// It opened, for so long.
    Opened(Duration),
    /// It closed.
    Closed,
}

impl Breaker {
    /// A closed one.
    pub fn new(settings: BreakerSettings) -> Self {
        Self {
            settings,
            state: State::Closed { failures: 0 },
            openings: 0,
            epoch: 0,
            resting: None,
        }
    }

    /// Lets a request through, or says how long not.
    pub fn admit(&mut self, now: Instant) -> Result<Pass, Blocked> {
        let is_trial = match self.state {
            State::Closed { .. } => false,
            State::Open { until } if now >= until => {
                self.state = State::Trial { until };
                true
            }
            State::Open { until } => return Err(Blocked { wait: until - now }),
            State::Trial { .. } => return Err(Blocked { wait: TRIAL_WAIT }),
        };
        Ok(Pass {
            epoch: self.epoch,
            is_trial,
        })
    }

    /// How the backend stands.
    pub fn standing(&self, now: Instant) -> Standing {
        match self.state {
            State::Open { until } if now >= until => Standing::Due,
            State::Open { until } => Standing::Open(until - now),
            State::Trial { .. } => Standing::Trying,
            State::Closed { .. } => match self.resting {
                Some(until) if now < until => Standing::Resting(until - now),
                _ => Standing::Ready,
            },
        }
    }

    /// An answer began. After a trial others may ask again, and one more failure opens it again.
    pub fn began(&mut self, pass: &Pass) -> Change {
        if pass.epoch == self.epoch && pass.is_trial {
            self.found_well()
        } else {
            Change::Nothing
        }
    }

    /// The answer is whole, or the backend said in its right mind what is wrong with the request.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "a pass is told of once, and used up by it"
    )]
    pub fn succeeded(&mut self, pass: Pass) -> Change {
        if pass.epoch != self.epoch {
            return Change::Nothing;
        }
        let was_closed = matches!(self.state, State::Closed { .. });
        if !was_closed && !pass.is_trial {
            return Change::Nothing;
        }
        self.state = State::Closed { failures: 0 };
        self.openings = 0;
        self.resting = None;
        if was_closed {
            Change::Nothing
        } else {
            Change::Closed
        }
    }

    /// The backend failed, and perhaps said for how long.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "a pass is told of once, and used up by it"
    )]
    pub fn failed(&mut self, pass: Pass, now: Instant, wait: Option<Duration>) -> Change {
        if pass.epoch == self.epoch {
            self.count(now, wait)
        } else {
            Change::Nothing
        }
    }

    /// The backend is there, but of no use for a while.
    pub fn rests(&mut self, pass: Pass, now: Instant, wait: Option<Duration>) -> Change {
        let is_news = pass.epoch == self.epoch;
        let change = self.succeeded(pass);
        if is_news {
            let wait = wait.unwrap_or(self.settings.open);
            self.resting = Some(now + wait.min(self.settings.longest));
        }
        change
    }

    /// Nobody waited for what would come of it. Another may find out.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "a pass is told of once, and used up by it"
    )]
    pub fn abandoned(&mut self, pass: Pass) {
        if let (State::Trial { until }, true, true) =
            (self.state, pass.is_trial, pass.epoch == self.epoch)
        {
            self.state = State::Open { until };
        }
    }

    /// The backend answered when it was asked how it is: it may be used, and one more failure opens
    /// the breaker again.
    pub fn found_well(&mut self) -> Change {
        if let State::Closed { .. } = self.state {
            return Change::Nothing;
        }
        let failures = self.settings.failures.saturating_sub(1);
        self.state = State::Closed { failures };
        Change::Closed
    }

    /// It did not answer. As long as it is asked again within `again`, no request needs to try.
    pub fn found_unwell(&mut self, now: Instant, again: Duration) -> Change {
        match &mut self.state {
            State::Closed { .. } => self.count(now, None),
            State::Open { until } => {
                *until = (*until).max(now + again);
                Change::Nothing
            }
            State::Trial { .. } => Change::Nothing,
        }
    }

    fn count(&mut self, now: Instant, wait: Option<Duration>) -> Change {
        let failures = match self.state {
            State::Closed { failures } => failures.saturating_add(1),
            State::Trial { .. } => self.settings.failures,
            // Of the same epoch and yet open: the trial was abandoned, and its news comes late.
            State::Open { .. } => return Change::Nothing,
        };
        if failures < self.settings.failures || !self.settings.enabled {
            self.state = State::Closed { failures };
            return Change::Nothing;
        }
        let factor = 2_u32.saturating_pow(self.openings);
        let time = self.settings.open.saturating_mul(factor);
        let time = time
            .max(wait.unwrap_or_default())
            .min(self.settings.longest);
        self.openings = self.openings.saturating_add(1);
        self.epoch += 1;
        self.state = State::Open { until: now + time };
        Change::Opened(time)
    }
}

#[cfg(test)]
#[path = "breaker_tests.rs"]
mod tests;

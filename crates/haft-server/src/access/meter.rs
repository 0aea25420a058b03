//! What one key has asked for: how often in the last minute, and how much at this moment.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::key::KeyLimits;
use super::rate::{Bucket, RateReport};
use crate::error::{ApiError, ErrorCode};

/// How long somebody is told to wait who has too much under way: nobody knows when it ends.
const CONCURRENT_WAIT: Duration = Duration::from_secs(1);

/// The meter of one key. It outlives changes of the file of keys.
#[derive(Debug)]
pub(super) struct Meter {
    begun: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    bucket: Bucket,
    running: u32,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            state: Mutex::default(),
        }
    }
}

impl Meter {
    /// Counts a request. None where requests are not counted.
    pub(super) fn count(&self, limits: KeyLimits) -> Option<RateReport> {
        let per_minute = limits.requests_per_minute?;
        let now = self.begun.elapsed();
        Some(self.state().bucket.take(per_minute, now))
    }

    /// One more at the same time, if there may be.
    pub(super) fn begin(self: &Arc<Self>, limits: KeyLimits) -> Result<Running, ApiError> {
        let mut state = self.state();
        if let Some(most) = limits.concurrent
            && state.running >= most.get()
        {
            return Err(too_many_at_once(most));
        }
        state.running += 1;
        drop(state);
        Ok(Running(Arc::clone(self)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is half-counted if somebody panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One that is under way; it counts until it is dropped.
#[derive(Debug)]
pub(super) struct Running(Arc<Meter>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.state().running -= 1;
    }
}

fn too_many_at_once(most: NonZeroU32) -> ApiError {
    let message = format!(
        "this key has {most} responses under way, and may not have more at once: wait for one of \
         them, try again in {}",
        spoken(CONCURRENT_WAIT)
    );
    ApiError::new(ErrorCode::RateLimitExceeded, message).retry_after(CONCURRENT_WAIT)
}

impl RateReport {
    /// The refusal, if it was one.
    pub(crate) fn refusal(self) -> Option<ApiError> {
        let wait = self.wait?;
        let message = format!(
            "this key may send {} requests in a minute: try again in {}",
            self.limit,
            spoken(wait)
        );
        Some(ApiError::new(ErrorCode::RateLimitExceeded, message).retry_after(wait))
    }
}

/// A wait in words that clients read, never too short.
pub(super) fn spoken(wait: Duration) -> String {
    let tenths = wait.as_nanos().div_ceil(100_000_000).max(1);
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole}s"),
        (whole, tenth) => format!("{whole}.{tenth}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn concurrent(most: u32) -> KeyLimits {
        KeyLimits {
            concurrent: NonZeroU32::new(most),
            ..KeyLimits::default()
        }
    }

    #[test]
    fn what_is_over_makes_room() {
        let meter = Arc::new(Meter::default());
        let first = meter.begin(concurrent(2)).unwrap();
        let second = meter.begin(concurrent(2)).unwrap();
        let error = meter.begin(concurrent(2)).unwrap_err();
        assert_eq!(error.code, ErrorCode::RateLimitExceeded);
        assert!(error.message.ends_with("try again in 1s"), "{error}");
        drop(first);
        let third = meter.begin(concurrent(2)).unwrap();
        assert!(meter.begin(concurrent(2)).is_err());
        // A limit that was lifted meanwhile.
        assert!(meter.begin(KeyLimits::default()).is_ok());
        drop((second, third));
        assert_eq!(meter.state().running, 0);
    }

    #[test]
    fn waits_are_told_in_tenths_and_never_too_short() {
        for (milliseconds, told) in [
            (0, "0.1s"),
            (1, "0.1s"),
            (100, "0.1s"),
            (750, "0.8s"),
            (1_000, "1s"),
            (1_401, "1.5s"),
            (59_990, "60s"),
        ] {
            assert_eq!(spoken(Duration::from_millis(milliseconds)), told);
        }
    }
}

//! A rate: so many requests in a minute, spread as the client likes.
//!
//! A bucket holds as many requests as the minute allows and is refilled evenly. Its whole state is the
//! moment at which it would be full again.

use std::num::NonZeroU32;
use std::time::Duration;

/// The time that a bucket needs to fill.
const MINUTE: Duration = Duration::from_mins(1);

/// The state of a bucket. Times are counted from any fixed moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bucket {
    full_at: Duration,
}

/// What a client is told of its bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RateReport {
    /// How many requests there are in a minute.
    pub(crate) limit: u32,
    /// How many could be sent right now.
    pub(crate) remaining: u32,
    /// When the bucket is full again.
    pub(crate) full_in: Duration,
    /// How long to wait for the next request, if this one was refused.
    pub(crate) wait: Option<Duration>,
}

impl Bucket {
    /// Takes one request out, if there is one.
    pub(super) fn take(&mut self, per_minute: NonZeroU32, now: Duration) -> RateReport {
        let interval = MINUTE / per_minute.get();
        let full_at = self.full_at.max(now) + interval;
        let taken = full_at.saturating_sub(now);
        // What the division above cut off must not cost the last request of a minute.
        let capacity = interval * per_minute.get();
        if taken > capacity {
            return self.report(per_minute, now, Some(taken.saturating_sub(capacity)));
        }
        self.full_at = full_at;
        self.report(per_minute, now, None)
    }

    fn report(self, per_minute: NonZeroU32, now: Duration, wait: Option<Duration>) -> RateReport {
        let interval = MINUTE / per_minute.get();
        let full_in = self.full_at.saturating_sub(now);
        let missing = full_in.as_nanos().div_ceil(interval.as_nanos().max(1));
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        RateReport {
            limit: per_minute.get(),
            remaining: per_minute.get().saturating_sub(missing),
            full_in,
            wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn per_minute(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).unwrap()
    }

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn a_minutes_requests_can_come_at_once_and_then_one_at_a_time() {
        let mut bucket = Bucket::default();
        let rate = per_minute(60);
        for remaining in (0..60).rev() {
            let report = bucket.take(rate, at(100.0));
            assert_eq!((report.remaining, report.wait), (remaining, None));
        }
        let refused = bucket.take(rate, at(100.25));
        assert_eq!(refused.wait, Some(at(0.75)));
        assert_eq!((refused.remaining, refused.full_in), (0, at(59.75)));
        assert_eq!(bucket.take(rate, at(101.0)).wait, None);
        assert!(bucket.take(rate, at(101.0)).wait.is_some());
        let rested = bucket.take(rate, at(500.0));
        assert_eq!((rested.remaining, rested.full_in), (59, at(1.0)));
    }

    #[test]
    fn every_request_of_an_odd_minute_counts() {
        for number in [1, 7, 11, 59, 61, 997, 1_000_003, u32::MAX] {
            let mut bucket = Bucket::default();
            let now = at(3.0);
            let report = bucket.take(per_minute(number), now);
            assert_eq!(
                (report.remaining, report.wait),
                (number - 1, None),
                "{number}"
            );
            for _ in 1..number.min(2_000) {
                assert_eq!(bucket.take(per_minute(number), now).wait, None);
            }
            if number < 2_000 {
                assert!(bucket.take(per_minute(number), now).wait.is_some());
            }
        }
    }

    proptest! {
        /// Whatever the pauses: never more than the bucket and what was refilled, whoever waits as
        /// told is let in, and nobody is refused while a request is left.
        #[test]
        fn no_stretch_of_time_has_more_than_its_share(
            number in 1_u32..200,
            pauses in prop::collection::vec(0_u64..2_000_000, 1..300),
        ) {
            let rate = per_minute(number);
            let mut bucket = Bucket::default();
            let mut now = Duration::from_secs(1_000);
            let mut taken: Vec<Duration> = Vec::new();
            for pause in pauses {
                now += Duration::from_micros(pause);
                let report = bucket.take(rate, now);
                let Some(wait) = report.wait else {
                    taken.push(now);
                    continue;
                };
                prop_assert_eq!(report.remaining, 0);
                let mut earlier = bucket;
                let almost = wait.saturating_sub(Duration::from_nanos(1));
                prop_assert!(earlier.take(rate, now + almost).wait.is_some());
                let mut later = bucket;
                prop_assert_eq!(later.take(rate, now + wait).wait, None);
            }
            for (first, start) in taken.iter().enumerate() {
                for (count, end) in taken[first..].iter().enumerate() {
                    let refilled = end.saturating_sub(*start).as_nanos() * u128::from(number)
                        / MINUTE.as_nanos();
                    // One for what the division of the minute cut off.
                    prop_assert!(count as u128 <= u128::from(number) + refilled + 1);
                }
            }
        }
    }
}

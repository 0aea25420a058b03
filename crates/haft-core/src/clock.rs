//! The time of day, guarded against a system clock that is set while the process runs.
//!
//! What is stored has a time, and is deleted when it is old enough. A clock that is set back gives new records
//! an old time; one that is set forward makes all records old at once. So the wall clock is compared with the
//! time that has passed since it was last in step.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How far the wall clock may be off the time that has passed: it is corrected in small steps all the time.
const TOLERANCE: i64 = 60;

/// How long a clock that was set forward must stay there before records are deleted by it. A machine that was
/// asleep looks the same.
const GRACE: Duration = Duration::from_hours(1);

/// How long a process may have been away before its clock is doubted.
const ABSENCE: i64 = 24 * 60 * 60;

/// What the clock has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockEvent {
    /// It was set forward by so many seconds, or the machine was asleep.
    SetForward(i64),
    /// It was set back by so many seconds.
    SetBack(i64),
    /// It is in step again, or was right all the time.
    InStep,
}

/// A time of day in two readings, in seconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// For new records. It never goes back by more than a small correction.
    pub now: i64,
    /// For the age of records. It does not follow a clock that was set forward until that has lasted.
    pub settled: i64,
}

/// The clock as a state machine: each observation passes in both times.
#[derive(Debug, Clone)]
struct Clock {
    /// When both were last in step.
    wall: i64,
    monotonic: Duration,
    /// Since when the wall clock is ahead.
    ahead_since: Option<Duration>,
    is_behind: bool,
}

impl Clock {
    fn new(wall: i64, monotonic: Duration) -> Self {
        Self {
            wall,
            monotonic,
            ahead_since: None,
            is_behind: false,
        }
    }

    fn observe(&mut self, wall: i64, monotonic: Duration) -> (ClockReading, Option<ClockEvent>) {
        let passed = monotonic.saturating_sub(self.monotonic).as_secs();
        let expected = self.wall + i64::try_from(passed).unwrap_or(i64::MAX / 2);
        let off = wall.saturating_sub(expected);
        let was_off = self.is_behind || self.ahead_since.is_some();
        if off > TOLERANCE {
            let is_new = self.ahead_since.is_none();
            let since = *self.ahead_since.get_or_insert(monotonic);
            self.is_behind = false;
            if monotonic.saturating_sub(since) < GRACE {
                let reading = ClockReading {
                    now: wall,
                    settled: expected,
                };
                return (reading, is_new.then_some(ClockEvent::SetForward(off)));
            }
        } else if off < -TOLERANCE {
            let is_new = !std::mem::replace(&mut self.is_behind, true);
            self.ahead_since = None;
            let reading = ClockReading {
                now: expected,
                settled: expected,
            };
            return (reading, is_new.then_some(ClockEvent::SetBack(-off)));
        }
        *self = Self::new(wall, monotonic);
        let reading = ClockReading {
            now: wall,
            settled: wall,
        };
        (reading, was_off.then_some(ClockEvent::InStep))
    }
}

/// The clock of this process, and when the process first asked for it.
static CLOCK: Mutex<Option<Clock>> = Mutex::new(None);
static START: OnceLock<Instant> = OnceLock::new();

fn wall() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

/// The time of day, and what the clock has done since the last observation.
///
/// ```
/// let (reading, _) = haft_core::observe_clock();
/// assert!(reading.now >= reading.settled);
/// ```
pub fn observe_clock() -> (ClockReading, Option<ClockEvent>) {
    let monotonic = START.get_or_init(Instant::now).elapsed();
    let wall = wall();
    let mut clock = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    clock
        .get_or_insert_with(|| Clock::new(wall, monotonic))
        .observe(wall, monotonic)
}

/// The time of day for new records, in seconds since the epoch.
pub fn unix_now() -> i64 {
    read().now
}

/// The time of day by which the age of records is counted, in seconds since the epoch.
pub fn settled_now() -> i64 {
    read().settled
}

/// Both readings; what the clock has done stays pending for the next observation.
fn read() -> ClockReading {
    let monotonic = START.get_or_init(Instant::now).elapsed();
    let wall = wall();
    let clock = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let clock = clock.clone();
    let mut clock = clock.unwrap_or_else(|| Clock::new(wall, monotonic));
    clock.observe(wall, monotonic).0
}

/// Starts the clock of a process that continues where another was at this time, in seconds since the epoch.
/// The error is how many seconds the wall clock is behind that time.
///
/// After an absence of more than a day the age of records is counted from `last` until the wall clock has
/// stayed where it is for an hour.
pub fn resume_clock(last: i64) -> Result<(), i64> {
    let monotonic = START.get_or_init(Instant::now).elapsed();
    let wall = wall();
    if wall < last - TOLERANCE {
        return Err(last - wall);
    }
    let begin = if wall > last + ABSENCE { last } else { wall };
    *CLOCK.lock().unwrap_or_else(PoisonError::into_inner) = Some(Clock::new(begin, monotonic));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: i64 = 1_800_000_000;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn small_corrections_are_followed() {
        let mut clock = Clock::new(T, seconds(0));
        for (passed, wall) in [(10, T + 40), (20, T + 20), (30, T + 85)] {
            let (reading, event) = clock.observe(wall, seconds(passed));
            let both = ClockReading {
                now: wall,
                settled: wall,
            };
            assert_eq!((reading, event), (both, None));
        }
    }

    #[test]
    fn clock_that_is_set_back_gives_no_old_times() {
        let mut clock = Clock::new(T, seconds(0));
        let (reading, event) = clock.observe(T - 86_400 + 10, seconds(10));
        assert_eq!((reading.now, reading.settled), (T + 10, T + 10));
        assert_eq!(event, Some(ClockEvent::SetBack(86_400)));
        let (reading, event) = clock.observe(T - 86_400 + 20, seconds(20));
        assert_eq!((reading.now, event), (T + 20, None), "reported once");
        let (reading, event) = clock.observe(T + 30, seconds(30));
        assert_eq!((reading.now, event), (T + 30, Some(ClockEvent::InStep)));
    }

    #[test]
    fn clock_that_is_set_forward_makes_nothing_old_until_it_has_lasted() {
        let year = 365 * 86_400;
        let mut clock = Clock::new(T, seconds(0));
        let (reading, event) = clock.observe(T + year, seconds(10));
        assert_eq!((reading.now, reading.settled), (T + year, T + 10));
        assert_eq!(event, Some(ClockEvent::SetForward(year - 10)));
        let (reading, event) = clock.observe(T + 20, seconds(20));
        assert_eq!(
            (reading.now, reading.settled),
            (T + 20, T + 20),
            "corrected"
        );
        assert_eq!(event, Some(ClockEvent::InStep));
        clock.observe(T + year, seconds(30));
        let (reading, _) = clock.observe(T + year + 3_599, seconds(30 + 3_599));
        assert_eq!(reading.settled, T + 30 + 3_599);
        let (reading, event) = clock.observe(T + year + 3_600, seconds(30 + 3_600));
        assert_eq!(reading.settled, T + year + 3_600);
        assert_eq!(event, Some(ClockEvent::InStep));
    }
}

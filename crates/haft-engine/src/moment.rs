//! Points in time, given to the machine from outside.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// A point in time, as the time since the Unix epoch.
///
/// The machine has no clock of its own: whoever drives it says what time it is. The driver takes
/// the wall clock once and adds monotonic time, so that moments of one run never go back.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Moment(Duration);

impl Moment {
    /// So long after the epoch.
    pub const fn since_epoch(duration: Duration) -> Self {
        Self(duration)
    }

    /// So much later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }

    /// How long after `earlier` this is; zero if it is not.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The time since the epoch.
    pub fn to_duration(self) -> Duration {
        self.0
    }

    /// Seconds since the epoch.
    pub fn as_seconds(self) -> f64 {
        self.0.as_secs_f64()
    }
}

impl From<SystemTime> for Moment {
    fn from(time: SystemTime) -> Self {
        // A clock before 1970 is set to it: nothing here needs more.
        Self(
            time.duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default(),
        )
    }
}

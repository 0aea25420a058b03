//! Where age becomes too old.

use std::time::Duration;

/// What is older than this time is older than `max_age`.
///
/// Times are whole seconds, so a part of a second in the age makes no difference: an age of two
/// seconds is more than 1.5 as it is more than 1.
pub(crate) fn cutoff(now: i64, max_age: Duration) -> i64 {
    now.saturating_sub(i64::try_from(max_age.as_secs()).unwrap_or(i64::MAX))
}

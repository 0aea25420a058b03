//! The time of writing. The seam gives none, and only conversations need it.

use std::time::{SystemTime, UNIX_EPOCH};

/// The seconds since the epoch; zero for a clock that was never set.
pub(crate) fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_secs()).ok())
        .unwrap_or_default()
}

//! The time of writing. The trait gives none, and only conversations need it.

/// The seconds since the epoch; a clock that is set back while the process runs is not followed.
pub(crate) fn now() -> i64 {
    haft_core::unix_now()
}

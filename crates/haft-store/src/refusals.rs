//! What both stores refuse, in the same words.

use haft_core::StoreError;

/// A response was to continue itself.
pub(crate) fn circle(id: &str, previous: &str) -> StoreError {
    StoreError::Failed(format!(
        "response `{id}` cannot continue `{previous}`, because that one continues it: give it \
         another id"
    ))
}

/// A chain of more is refused. None that a model can read is so long; it is there so that a damaged
/// file cannot keep a reader busy for ever.
pub(crate) const LONGEST_CHAIN: u32 = 100_000;

/// Refuses a chain that is longer than a store reads.
pub(crate) fn check_length(id: &str, length: usize) -> Result<(), StoreError> {
    if u32::try_from(length).is_ok_and(|length| length <= LONGEST_CHAIN) {
        return Ok(());
    }
    Err(StoreError::Failed(format!(
        "response `{id}` continues {LONGEST_CHAIN} others or more: compact the chain and begin anew"
    )))
}

/// The number of an event as it is stored. SQLite has no larger ones, and no stream gets so far.
pub(crate) fn storable_number(sequence_number: u64) -> Result<i64, StoreError> {
    i64::try_from(sequence_number).map_err(|_| {
        StoreError::Failed(format!(
            "`{sequence_number}` is too large for the number of an event: the largest is `{}`",
            i64::MAX
        ))
    })
}

/// An event was to take the number of another one: what was told once stays told.
pub(crate) fn other_event(response_id: &str, sequence_number: u64) -> StoreError {
    StoreError::Failed(format!(
        "the log of response `{response_id}` has another event with the number \
         `{sequence_number}`: go on behind its last one"
    ))
}

/// Something was to be written to a store that is open for reading only.
pub(crate) fn read_only() -> StoreError {
    StoreError::Failed("it is open for reading only: let the server that keeps it write".to_owned())
}

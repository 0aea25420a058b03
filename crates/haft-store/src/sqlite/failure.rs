//! What SQLite's errors mean for the users of the store.

use haft_core::StoreError;
use rusqlite::ErrorCode;

/// What the statements of one read or write come to.
pub(super) type Outcome<T> = Result<T, Failure>;

/// An error on its way from SQLite to a caller. It says what SQLite says, which never contains a
/// value that was to be written.
#[derive(Debug)]
pub(super) struct Failure(pub(super) StoreError);

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self(match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy,
            _ => StoreError::Failed(error.to_string()),
        })
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self(error)
    }
}

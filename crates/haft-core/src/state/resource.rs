//! What takes part in snapshots and transactions from outside this process.

use serde_json::Value;

use super::error::RestoreError;
use super::transaction::TransactionId;
use crate::caught::caught;

/// Something outside the session's slices that calls change: a working directory, a database.
///
/// It tells the changes of one call from those of others by the call's [`TransactionId`]. Its
/// methods may block for as long as local work takes, and must not call back into the session.
pub trait Resource: Send + Sync + 'static {
    /// What it is called in snapshots and errors; the same every time.
    fn name(&self) -> &str;

    /// Its content as it is now, or whatever [`restore`](Self::restore) needs to find it again.
    fn capture(&self) -> Result<Value, ResourceError>;

    /// Puts back what was captured: all of it, or nothing on an error.
    fn restore(&self, captured: &Value) -> Result<(), ResourceError>;

    /// This call's changes stay: whatever was kept to undo them can go.
    fn commit(&self, transaction: TransactionId);

    /// Undoes exactly this call's changes.
    fn rollback(&self, transaction: TransactionId) -> Result<(), ResourceError>;
}

/// A resource's failure, in its own words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ResourceError(String);

impl ResourceError {
    /// A failure in these words.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// Runs a resource's code; its failure or panic becomes an error that names it.
pub(super) fn guarded<T>(
    resource: &dyn Resource,
    run: impl FnOnce(&dyn Resource) -> Result<T, ResourceError>,
) -> Result<T, RestoreError> {
    let outcome = caught(|| run(resource).map_err(|error| error.0));
    outcome
        .unwrap_or_else(|panic| Err(format!("it panicked: {panic}")))
        .map_err(|reason| RestoreError::Resource {
            resource: caught(|| resource.name().to_owned()).unwrap_or_default(),
            reason,
        })
}

//! Session state: what a conversation keeps beside its items, and how calls change it safely.
//!
//! State is held in typed **slices**. A call does not change them directly: its changes are kept in
//! the journal of its [`Transaction`], seen by that call at once and by everyone else when it is
//! committed. Rolling back drops exactly that journal. What lies outside this process, such as a
//! working directory, takes part as a [`Resource`].
//!
//! What comes in: slices that the host and its policies register, and changes as operations. What
//! goes out: values, shared and never half-changed, and [`Snapshot`]s. Nothing here does I/O, looks
//! at a clock or makes up an id. The cost of a call follows the slices that it changes, not all
//! state.

mod error;
mod resource;
mod session;
mod slice;
mod snapshot;
mod transaction;

pub use error::{RestoreError, StateError};
pub use resource::{Resource, ResourceError};
pub use session::{SessionState, SessionStateBuilder};
pub use slice::{Slice, SliceKind};
pub use snapshot::{Snapshot, SnapshotMeta, SnapshotPhase};
pub use transaction::{Transaction, TransactionId};

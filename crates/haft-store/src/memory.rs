//! A store that lasts as long as itself.

mod cleaning;
mod conversations;
mod lists;
mod records;
mod responses;
mod store;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use haft_core::Owner;
use records::{Records, ResponseRecord};

/// A store in memory: for tests, and for hosts that want no file.
///
/// It keeps the whole contract but for lasting. Nothing but the retention bounds it. A call takes effect
/// at once, before its future is awaited.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use haft_core::{Owner, Store};
/// use haft_store::MemoryStore;
///
/// let store = MemoryStore::new();
/// assert!(store.response(&Owner::default(), "resp_1").await?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<State>,
}

/// Everything, by owner.
#[derive(Default)]
struct State {
    /// What the server notes about itself.
    server_notes: HashMap<String, String>,
    owners: HashMap<Owner, Records>,
    /// The number of the last thing that was written.
    seq: u64,
}

impl State {
    /// A response that was not deleted.
    fn living(&self, owner: &Owner, id: &str) -> Option<&ResponseRecord> {
        self.owners.get(owner)?.living(id)
    }

    fn living_mut(&mut self, owner: &Owner, id: &str) -> Option<&mut ResponseRecord> {
        let response = self.owners.get_mut(owner)?.responses.get_mut(id)?;
        Some(response).filter(|response| !response.is_deleted())
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics between two changes that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

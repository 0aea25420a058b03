//! The changes of one call, until they are kept or dropped.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::{RestoreError, StateError};
use super::resource::guarded;
use super::session::{SessionState, Store, slot};
use super::slice::{AnyValue, Operation, Slice, SliceKind, SliceType, changed, operation, typed};
use crate::caught::caught;

/// One call's journal. Clones share it.
///
/// The call sees its own changes at once, over whatever is committed; others see them when they are
/// committed. A change is kept as an operation and made again on the committed value, so where two
/// overlapping calls both add to a slice, both count. A call whose last handle is dropped before
/// the end is rolled back.
#[derive(Clone)]
pub struct Transaction(Arc<Shared>);

/// One transaction among all of this process. Call ids are not enough to tell calls apart: two
/// conversations may both have a `call_1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransactionId(u64);

impl TransactionId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

struct Shared {
    id: TransactionId,
    state: SessionState,
    call_id: String,
    tool_name: String,
    journal: Mutex<Journal>,
}

/// Taken before the session's lock, never after it.
#[derive(Default)]
struct Journal {
    over: bool,
    writes: BTreeMap<&'static str, Write>,
}

#[derive(Default)]
struct Write {
    operations: Vec<Operation>,
    view: Option<View>,
}

/// A committed value with this call's operations on it.
struct View {
    value: AnyValue,
    /// Which committed value it was made of.
    version: u64,
}

impl Transaction {
    pub(super) fn new(state: SessionState, call_id: &str, tool_name: &str) -> Self {
        Self(Arc::new(Shared {
            id: TransactionId::next(),
            state,
            call_id: call_id.to_owned(),
            tool_name: tool_name.to_owned(),
            journal: Mutex::default(),
        }))
    }

    /// Which one it is.
    pub fn id(&self) -> TransactionId {
        self.0.id
    }

    /// Whose changes they are.
    pub fn call_id(&self) -> &str {
        &self.0.call_id
    }

    /// That call's tool.
    pub fn tool_name(&self) -> &str {
        &self.0.tool_name
    }

    /// A slice as this call sees it: what is committed, and its own changes on it.
    pub fn get<T: Slice>(&self) -> Result<Arc<T>, StateError> {
        let mut journal = self.0.journal();
        match journal.writes.get_mut(T::NAME) {
            None => self.0.state.get::<T>(),
            Some(write) => {
                let view = self.0.view::<T>(write)?;
                let value = typed(&view.value);
                write.view = Some(view);
                value.ok_or(StateError::NotRegistered { slice: T::NAME })
            }
        }
    }

    /// Changes a slice. `change` is run on this call's own view at once, and again on the committed
    /// value if that changed in between: it must depend on nothing but the value, and must not use
    /// the session's state itself. A log is written at once, and once.
    pub fn update<T: Slice>(
        &self,
        change: impl Fn(&mut T) + Send + Sync + 'static,
    ) -> Result<(), StateError> {
        let mut journal = self.0.open()?;
        if T::KIND == SliceKind::Log {
            return self.0.state.update::<T>(change);
        }
        slot::<T>(&self.0.state.store())?;
        let change = operation(change);
        let write = journal.writes.entry(T::NAME).or_default();
        if T::GROWS && write.view.is_none() {
            write.operations.push(change);
            return Ok(());
        }
        let mut view = self.0.view::<T>(write)?;
        // A change that panics is neither seen nor kept: the view is made anew without it.
        changed(&mut view.value, SliceType::of::<T>(), |value| change(value));
        write.view = Some(view);
        write.operations.push(change);
        Ok(())
    }

    /// Replaces a slice.
    pub fn set<T: Slice>(&self, value: T) -> Result<(), StateError> {
        let mut journal = self.0.open()?;
        if T::KIND == SliceKind::Log {
            return self.0.state.update::<T>(|slot| *slot = value);
        }
        slot::<T>(&self.0.state.store())?;
        let write = Write {
            operations: vec![operation(move |slot: &mut T| *slot = value.clone())],
            view: None,
        };
        journal.writes.insert(T::NAME, write);
        Ok(())
    }

    /// Whether a resource of this name will hear how the call ends.
    pub fn has_resource(&self, name: &str) -> bool {
        self.0.state.store().resources.contains_key(name)
    }

    /// Whether the call was neither committed nor rolled back yet.
    pub fn is_open(&self) -> bool {
        !self.0.journal().over
    }

    /// Keeps the call's changes. On an error nothing of them is kept, nor of its resources'.
    pub fn commit(&self) -> Result<(), StateError> {
        let writes = self.0.end().ok_or_else(|| self.0.call_over())?;
        let outcome = commit(&mut self.0.state.store(), writes);
        if outcome.is_err() {
            self.0.log_rollback();
            return outcome;
        }
        for resource in self.0.state.resources() {
            if let Err(panic) = caught(|| resource.commit(self.0.id)) {
                tracing::error!(panic, "a resource panicked while it was committed");
            }
        }
        Ok(())
    }

    /// Drops the call's changes, and has every resource undo its own. All of them are asked, also
    /// when one fails; the first failure is reported.
    pub fn rollback(&self) -> Result<(), RestoreError> {
        match self.0.end() {
            Some(_) => self.0.roll_resources_back(),
            None => Err(RestoreError::CallOver(self.0.call_id.clone())),
        }
    }
}

impl Shared {
    fn journal(&self) -> MutexGuard<'_, Journal> {
        // An operation that panicked left no trace in the journal.
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> Result<MutexGuard<'_, Journal>, StateError> {
        let journal = self.journal();
        if journal.over {
            return Err(self.call_over());
        }
        Ok(journal)
    }

    /// Ends the call; what it wrote, unless it was over already.
    fn end(&self) -> Option<BTreeMap<&'static str, Write>> {
        let mut journal = self.journal();
        if std::mem::replace(&mut journal.over, true) {
            return None;
        }
        Some(std::mem::take(&mut journal.writes))
    }

    /// The up-to-date view of a slice, taken out of the journal.
    fn view<T: Slice>(&self, write: &mut Write) -> Result<View, StateError> {
        let (committed, version) = {
            let store = self.state.store();
            let slot = slot::<T>(&store)?;
            (Arc::clone(&slot.value), slot.version)
        };
        if let Some(view) = write.view.take().filter(|view| view.version == version) {
            return Ok(view);
        }
        let value = with_operations(&committed, SliceType::of::<T>(), &write.operations);
        Ok(View { value, version })
    }

    fn call_over(&self) -> StateError {
        StateError::CallOver {
            call_id: self.call_id.clone(),
        }
    }

    fn roll_resources_back(&self) -> Result<(), RestoreError> {
        let mut outcome = Ok(());
        for resource in self.state.resources() {
            let undone = guarded(&*resource, |resource| resource.rollback(self.id));
            outcome = outcome.and(undone);
        }
        outcome
    }

    fn log_rollback(&self) {
        if let Err(error) = self.roll_resources_back() {
            tracing::error!(call_id = self.call_id, %error, "a call was not rolled back in full");
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // A run that was dropped in the middle of a call must not leave half of it behind.
        if self.end().is_some() {
            self.log_rollback();
        }
    }
}

/// Makes all values first and puts them in place then, so that a panic leaves everything as it was.
fn commit(store: &mut Store, writes: BTreeMap<&'static str, Write>) -> Result<(), StateError> {
    let mut ready = Vec::new();
    for (name, write) in writes {
        let Some(slot) = store.slots.get(name) else {
            continue;
        };
        let value = match write.view {
            Some(view) if view.version == slot.version => Some(view.value),
            _ if slot.of.grows => None,
            _ => {
                let made = caught(|| with_operations(&slot.value, slot.of, &write.operations));
                Some(made.map_err(|reason| StateError::Panicked {
                    slice: name,
                    reason,
                })?)
            }
        };
        ready.push((name, value, write.operations));
    }
    for (name, value, operations) in ready {
        let Some(slot) = store.slots.get_mut(name) else {
            continue;
        };
        match value {
            Some(value) => {
                slot.put(value);
            }
            None => {
                for operation in operations {
                    if let Err(panic) = caught(|| slot.change(|value| operation(value))) {
                        tracing::error!(slice = name, panic, "a change panicked in part");
                    }
                }
            }
        }
    }
    Ok(())
}

fn with_operations(committed: &AnyValue, of: SliceType, operations: &[Operation]) -> AnyValue {
    let mut value = (of.copy)(committed);
    for operation in operations {
        changed(&mut value, of, |value| operation(value));
    }
    value
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("call_id", &self.0.call_id)
            .field("tool_name", &self.0.tool_name)
            .field("open", &self.is_open())
            .finish_non_exhaustive()
    }
}

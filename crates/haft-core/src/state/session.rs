//! The state of one session.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

use super::error::{RestoreError, StateError};
use super::resource::{Resource, guarded};
use super::slice::{AnyValue, Slice, SliceKind, SliceType, Slot, typed};
use super::snapshot::{Held, Snapshot, SnapshotMeta};
use super::transaction::Transaction;

/// The committed state of a session. Clones share it.
///
/// ```
/// use haft_core::{SessionState, Slice};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Default, Serialize, Deserialize)]
/// struct Basket { items: Vec<String> }
/// impl Slice for Basket { const NAME: &'static str = "basket"; }
///
/// let state = SessionState::builder().slice::<Basket>().build()?;
/// let call = state.begin("call_1", "buy");
/// call.update::<Basket>(|basket| basket.items.push("pear".into()))?;
/// assert_eq!(call.get::<Basket>()?.items, ["pear"]);
/// assert!(state.get::<Basket>()?.items.is_empty());
/// call.commit()?;
/// assert_eq!(state.get::<Basket>()?.items, ["pear"]);
/// # Ok::<(), haft_core::StateError>(())
/// ```
#[derive(Clone, Default)]
pub struct SessionState(Arc<Mutex<Store>>);

/// Slices and resources, both in name order.
#[derive(Default)]
pub(super) struct Store {
    pub(super) slots: BTreeMap<&'static str, Slot>,
    pub(super) resources: BTreeMap<String, Arc<dyn Resource>>,
}

impl SessionState {
    /// Starts a session's state.
    pub fn builder() -> SessionStateBuilder {
        SessionStateBuilder::default()
    }

    /// Registers a slice, empty, if it is not there yet.
    pub fn register<T: Slice>(&self) -> Result<(), StateError> {
        let mut store = self.store();
        let slot = store
            .slots
            .entry(T::NAME)
            .or_insert_with(|| Slot::new(SliceType::of::<T>()));
        of_type::<T>(slot).map(|_| ())
    }

    /// Registers a resource.
    pub fn register_resource(&self, resource: Arc<dyn Resource>) -> Result<(), StateError> {
        let name = resource.name().to_owned();
        let mut store = self.store();
        if store.resources.contains_key(&name) {
            return Err(StateError::ResourceTaken { resource: name });
        }
        store.resources.insert(name, resource);
        Ok(())
    }

    /// The committed value of a slice.
    pub fn get<T: Slice>(&self) -> Result<Arc<T>, StateError> {
        let store = self.store();
        typed(&slot::<T>(&store)?.value).ok_or_else(not_registered::<T>)
    }

    /// Changes a slice at once, outside any call. `change` must not use this state itself.
    pub fn update<T: Slice>(&self, change: impl FnOnce(&mut T)) -> Result<(), StateError> {
        let mut store = self.store();
        slot::<T>(&store)?;
        let slot = store.slots.get_mut(T::NAME);
        slot.ok_or_else(not_registered::<T>)?.change(|value| {
            if let Some(value) = value.downcast_mut() {
                change(value);
            }
        });
        Ok(())
    }

    /// Starts the journal of one call.
    pub fn begin(&self, call_id: &str, tool_name: &str) -> Transaction {
        Transaction::new(self.clone(), call_id, tool_name)
    }

    /// Takes a snapshot of every state slice and every resource. Slices are shared, not copied;
    /// they are written as JSON when the snapshot is.
    ///
    /// A resource that cannot be captured is an error that names it.
    pub fn snapshot(&self, meta: SnapshotMeta) -> Result<Snapshot, RestoreError> {
        let store = self.store();
        let state = state_slots(&store)
            .map(|(name, slot)| {
                let held = Held::Live(Arc::clone(&slot.value), slot.of);
                ((*name).to_owned(), held)
            })
            .collect();
        let resources = store.resources.clone();
        drop(store);
        let resources = resources
            .into_iter()
            .map(|(name, resource)| Ok((name, guarded(&*resource, Resource::capture)?)))
            .collect::<Result<_, RestoreError>>()?;
        Ok(Snapshot::new(meta, state, resources))
    }

    /// Puts a snapshot back: state first, then resources in name order, all or nothing.
    ///
    /// A registered slice that the snapshot lacks becomes empty; logs stay as they are. Calls that
    /// are still open keep their journals.
    pub fn restore(&self, snapshot: &Snapshot) -> Result<(), RestoreError> {
        snapshot.check_version()?;
        let mut store = self.store();
        known_slices(snapshot.state.keys(), |name| {
            state_slots(&store).any(|(known, _)| *known == name)
        })?;
        if let Some(name) = snapshot
            .resources
            .keys()
            .find(|name| !store.resources.contains_key(*name))
        {
            return Err(RestoreError::UnknownResource(name.clone()));
        }
        let values = state_slots(&store)
            .map(|(name, slot)| Ok((*name, value_from(snapshot, name, slot)?)))
            .collect::<Result<Vec<_>, RestoreError>>()?;
        // The lock is held, so nobody sees the one without the other.
        let before = put_all(&mut store, values);
        restore_resources(&store, snapshot).inspect_err(|_| {
            put_all(&mut store, before);
        })
    }

    /// Every slice, logs included, as a JSON object: for a stored session.
    pub fn to_value(&self) -> Result<Value, StateError> {
        let slices: Vec<_> = {
            let store = self.store();
            let slots = store.slots.iter();
            slots
                .map(|(name, slot)| (*name, slot.of, Arc::clone(&slot.value)))
                .collect()
        };
        slices
            .into_iter()
            .map(|(name, of, value)| match (of.write)(&value) {
                Ok(json) => Ok((name.to_owned(), json)),
                Err(reason) => Err(StateError::NoJson {
                    slice: name.to_owned(),
                    reason,
                }),
            })
            .collect::<Result<Map<_, _>, _>>()
            .map(Value::Object)
    }

    /// Takes every slice from what [`to_value`](Self::to_value) wrote, all or nothing. A registered
    /// slice that is missing there becomes empty; one that nobody registered is an error.
    pub fn load(&self, stored: &Value) -> Result<(), RestoreError> {
        let stored = stored.as_object().ok_or(RestoreError::NotAnObject)?;
        let mut store = self.store();
        known_slices(stored.keys(), |name| store.slots.contains_key(name))?;
        let values = store
            .slots
            .iter()
            .map(|(name, slot)| match stored.get(*name) {
                Some(json) => Ok((*name, read(slot, name, json)?)),
                None => Ok((*name, (slot.of.empty)())),
            })
            .collect::<Result<Vec<_>, RestoreError>>()?;
        put_all(&mut store, values);
        Ok(())
    }

    pub(super) fn store(&self) -> MutexGuard<'_, Store> {
        // A change that panicked left its own slice in its own hands; the rest is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn resources(&self) -> Vec<Arc<dyn Resource>> {
        self.store().resources.values().cloned().collect()
    }
}

pub(super) fn slot<T: Slice>(store: &Store) -> Result<&Slot, StateError> {
    let slot = store.slots.get(T::NAME);
    slot.ok_or_else(not_registered::<T>).and_then(of_type::<T>)
}

fn of_type<T: Slice>(slot: &Slot) -> Result<&Slot, StateError> {
    if slot.of.id == SliceType::of::<T>().id {
        Ok(slot)
    } else {
        Err(StateError::NameTaken {
            slice: T::NAME,
            holder: slot.of.type_name,
        })
    }
}

fn not_registered<T: Slice>() -> StateError {
    StateError::NotRegistered { slice: T::NAME }
}

fn state_slots(store: &Store) -> impl Iterator<Item = (&&'static str, &Slot)> {
    let slots = store.slots.iter();
    slots.filter(|(_, slot)| slot.of.kind == SliceKind::State)
}

fn known_slices<'a>(
    names: impl Iterator<Item = &'a String>,
    known: impl Fn(&str) -> bool,
) -> Result<(), RestoreError> {
    let unknown: Vec<_> = names.filter(|name| !known(name)).cloned().collect();
    if unknown.is_empty() {
        Ok(())
    } else {
        Err(RestoreError::UnknownSlices(unknown))
    }
}

fn value_from(snapshot: &Snapshot, name: &str, slot: &Slot) -> Result<AnyValue, RestoreError> {
    match snapshot.state.get(name) {
        None => Ok((slot.of.empty)()),
        Some(Held::Live(value, of)) if of.id == slot.of.id => Ok(Arc::clone(value)),
        Some(held) => {
            let json = held.to_json().map_err(|reason| invalid(name, reason))?;
            read(slot, name, &json)
        }
    }
}

fn read(slot: &Slot, name: &str, json: &Value) -> Result<AnyValue, RestoreError> {
    (slot.of.read)(json).map_err(|reason| invalid(name, reason))
}

fn invalid(name: &str, reason: String) -> RestoreError {
    RestoreError::InvalidSlice {
        slice: name.to_owned(),
        reason,
    }
}

/// Puts values in place; the ones that were there.
fn put_all(
    store: &mut Store,
    values: Vec<(&'static str, AnyValue)>,
) -> Vec<(&'static str, AnyValue)> {
    let mut before = Vec::new();
    for (name, value) in values {
        if let Some(slot) = store.slots.get_mut(name) {
            before.push((name, slot.put(value)));
        }
    }
    before
}

/// Restores resources in name order; where one fails, those before it are put back as they were.
fn restore_resources(store: &Store, snapshot: &Snapshot) -> Result<(), RestoreError> {
    let mut before: Vec<(&Arc<dyn Resource>, Value)> = Vec::new();
    for (name, captured) in &snapshot.resources {
        let Some(resource) = store.resources.get(name) else {
            continue;
        };
        let outcome = guarded(&**resource, Resource::capture).and_then(|now| {
            guarded(&**resource, |resource| resource.restore(captured))?;
            Ok(now)
        });
        match outcome {
            Ok(now) => before.push((resource, now)),
            Err(error) => {
                for (resource, now) in before.into_iter().rev() {
                    if let Err(error) = guarded(&**resource, |resource| resource.restore(&now)) {
                        tracing::error!(%error, "a resource could not be put back");
                    }
                }
                return Err(error);
            }
        }
    }
    Ok(())
}

impl fmt::Debug for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // State may hold secrets: only which slices there are.
        let store = self.store();
        f.debug_struct("SessionState")
            .field("slices", &store.slots.keys())
            .field("resources", &store.resources.keys())
            .finish()
    }
}

/// Collects the slices and resources of a [`SessionState`].
#[derive(Default)]
#[must_use = "a session's state exists only after `build`"]
pub struct SessionStateBuilder {
    state: SessionState,
    error: Option<StateError>,
}

impl SessionStateBuilder {
    /// Adds a slice, empty. Adding the same type twice does nothing more.
    pub fn slice<T: Slice>(mut self) -> Self {
        let outcome = self.state.register::<T>();
        self.error = self.error.or(outcome.err());
        self
    }

    /// Adds a resource.
    pub fn resource(mut self, resource: Arc<dyn Resource>) -> Self {
        let outcome = self.state.register_resource(resource);
        self.error = self.error.or(outcome.err());
        self
    }

    /// The state; an error if two types or two resources want the same name.
    pub fn build(self) -> Result<SessionState, StateError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.state),
        }
    }
}

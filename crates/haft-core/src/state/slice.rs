//! A typed part of a session's state.

use std::any::{Any, TypeId, type_name};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// One typed part of a session's state.
///
/// ```
/// use haft_core::{Slice, SliceKind};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Default, Serialize, Deserialize)]
/// struct Basket { items: Vec<String> }
///
/// impl Slice for Basket {
///     const NAME: &'static str = "basket";
/// }
/// assert_eq!(Basket::KIND, SliceKind::State);
/// ```
pub trait Slice: Serialize + DeserializeOwned + Clone + Default + Send + Sync + 'static {
    /// What it is called in snapshots and stored sessions. Unique, and the same for ever.
    const NAME: &'static str;

    /// Whether it is rolled back.
    const KIND: SliceKind = SliceKind::State;

    /// Set it for a slice that grows with the conversation. A change is then not tried on a copy
    /// first: it is kept until somebody looks, or until it is committed, and a call costs what it
    /// changes however much is there already. In return, a change that panics does so only then.
    const GROWS: bool = false;
}

/// Whether a failed call leaves something behind in a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SliceKind {
    /// Rolled back with the call that changed it.
    State,
    /// Kept whatever happens: events, a transcript. Written at once, and not part of snapshots.
    Log,
}

/// A slice's value, its type forgotten.
pub(super) type AnyValue = Arc<dyn Any + Send + Sync>;

/// A change of a slice, its type forgotten.
pub(super) type Operation = Box<dyn Fn(&mut dyn Any) + Send + Sync>;

/// Forgets the type of a change.
pub(super) fn operation<T: Slice>(change: impl Fn(&mut T) + Send + Sync + 'static) -> Operation {
    Box::new(move |value| {
        if let Some(value) = value.downcast_mut() {
            change(value);
        }
    })
}

/// The type of a value, remembered.
pub(super) fn typed<T: Slice>(value: &AnyValue) -> Option<Arc<T>> {
    Arc::clone(value).downcast().ok()
}

/// What is known of a slice's type.
#[derive(Clone, Copy)]
pub(super) struct SliceType {
    pub(super) id: TypeId,
    pub(super) type_name: &'static str,
    pub(super) kind: SliceKind,
    pub(super) grows: bool,
    pub(super) empty: fn() -> AnyValue,
    pub(super) copy: fn(&AnyValue) -> AnyValue,
    pub(super) write: fn(&AnyValue) -> Result<Value, String>,
    pub(super) read: fn(&Value) -> Result<AnyValue, String>,
}

impl SliceType {
    pub(super) fn of<T: Slice>() -> Self {
        Self {
            id: TypeId::of::<T>(),
            type_name: type_name::<T>(),
            kind: T::KIND,
            grows: T::GROWS,
            empty: || Arc::new(T::default()),
            copy: |value| match value.downcast_ref::<T>() {
                Some(value) => Arc::new(value.clone()),
                None => Arc::clone(value),
            },
            write: |value| {
                serde_json::to_value(value.downcast_ref::<T>()).map_err(|error| error.to_string())
            },
            read: |json| match serde_path_to_error::deserialize::<_, T>(json) {
                Ok(value) => Ok(Arc::new(value)),
                Err(error) => Err(format!("at `{}`: {}", error.path(), error.inner())),
            },
        }
    }
}

/// One registered slice and its committed value.
pub(super) struct Slot {
    pub(super) of: SliceType,
    pub(super) value: AnyValue,
    /// Goes up with every change, so that a view of an older value is known as such.
    pub(super) version: u64,
}

impl Slot {
    pub(super) fn new(of: SliceType) -> Self {
        Self {
            of,
            value: (of.empty)(),
            version: 0,
        }
    }

    /// Replaces the value; the one that was there.
    pub(super) fn put(&mut self, value: AnyValue) -> AnyValue {
        self.version += 1;
        std::mem::replace(&mut self.value, value)
    }

    /// Changes the value in place, on a copy only if somebody else still looks at it.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut dyn Any)) {
        self.version += 1;
        changed(&mut self.value, self.of, change);
    }
}

/// Changes a value in place, on a copy only if it is shared.
pub(super) fn changed(value: &mut AnyValue, of: SliceType, change: impl FnOnce(&mut dyn Any)) {
    if Arc::get_mut(value).is_none() {
        *value = (of.copy)(value);
    }
    // A fresh copy has no other holder.
    if let Some(value) = Arc::get_mut(value) {
        change(value);
    }
}

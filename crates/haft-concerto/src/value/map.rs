//! Maps: values by text, in the order they were put in.

use indexmap::IndexMap;

use super::array::drop_flat;
use super::{Text, Value};

/// Keys come from models and servers: the hash is seeded anew in each process.
type Hash = foldhash::fast::RandomState;

/// Values by text, in the order they were put in.
#[derive(Debug, Clone, Default)]
pub struct Map {
    entries: IndexMap<Text, Value, Hash>,
}

impl Map {
    /// A map with room for some entries.
    pub fn with_capacity(count: usize) -> Self {
        Self {
            entries: IndexMap::with_capacity_and_hasher(count, Hash::default()),
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries.get(key)
    }

    /// The value of a key, to change.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.entries.get_mut(key)
    }

    /// Sets the value of a key; a new key comes last.
    pub fn insert(&mut self, key: impl Into<Text>, value: Value) -> Option<Value> {
        self.entries.insert(key.into(), value)
    }

    /// The value of a key, put there as nil if it was not.
    pub fn entry(&mut self, key: Text) -> &mut Value {
        self.entries.entry(key).or_default()
    }

    /// Takes a key out; the others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.entries.shift_remove(key)
    }

    /// Whether a key is there.
    pub fn contains(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// Takes everything out.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry at a place.
    pub fn at(&self, place: usize) -> Option<(&Text, &Value)> {
        self.entries.get_index(place)
    }

    /// All entries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Text, &Value)> {
        self.entries.iter()
    }

    /// All values, leaving nothing.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Value> + '_ {
        self.entries.drain(..).map(|(_, value)| value)
    }

    /// What one more entry takes: much where the table must grow for it.
    #[inline]
    pub(crate) fn growth(&self) -> usize {
        if self.len() < self.entries.capacity() {
            16
        } else {
            64 + 48 * self.entries.capacity()
        }
    }

    /// How much memory its table has.
    pub(crate) fn capacity(&self) -> usize {
        self.entries.capacity()
    }
}

impl<K: Into<Text>> FromIterator<(K, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(entries: I) -> Self {
        Self {
            entries: entries
                .into_iter()
                .map(|(key, value)| (key.into(), value))
                .collect(),
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        if self.entries.values().any(Value::is_container) {
            drop_flat(self.drain());
        }
    }
}

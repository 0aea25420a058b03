//! Things made once from something that never changes, and shared from then on.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Which of several renderings is meant: a wire format and, if it has several, which variant of it.
///
/// ```
/// use haft_core::RenderKey;
/// assert_ne!(RenderKey::new("chat"), RenderKey::new("chat").variant(1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RenderKey {
    format: &'static str,
    variant: u64,
}

impl RenderKey {
    /// The plain variant of a format.
    pub const fn new(format: &'static str) -> Self {
        Self { format, variant: 0 }
    }

    /// Another variant of it.
    #[must_use]
    pub const fn variant(self, variant: u64) -> Self {
        Self {
            format: self.format,
            variant,
        }
    }
}

/// What something looks like in each format, made when first asked for.
///
/// ```
/// use haft_core::{RenderCache, RenderKey};
/// let cache = RenderCache::default();
/// let first = cache.get(RenderKey::new("json"), || String::from("{}"));
/// let again = cache.get(RenderKey::new("json"), || unreachable!("made once"));
/// assert_eq!(first, again);
/// ```
#[derive(Default)]
pub struct RenderCache(Mutex<Vec<Slot>>);

struct Slot {
    key: RenderKey,
    of: TypeId,
    made: Arc<dyn Any + Send + Sync>,
}

impl RenderCache {
    /// The rendering for `key`; `make` runs at most once per key and type.
    pub fn get<T: Send + Sync + 'static>(
        &self,
        key: RenderKey,
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        // A panic in `make` leaves the list as it was.
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = TypeId::of::<T>();
        let known = slots
            .iter()
            .find(|slot| slot.key == key && slot.of == of)
            .and_then(|slot| Arc::clone(&slot.made).downcast().ok());
        known.unwrap_or_else(|| {
            let new = Arc::new(make());
            slots.push(Slot {
                key,
                of,
                made: Arc::clone(&new) as _,
            });
            new
        })
    }

    /// How many renderings there are: with what [`get`](Self::get) promises, how often something
    /// was rendered.
    ///
    /// ```
    /// use haft_core::{RenderCache, RenderKey};
    /// let cache = RenderCache::default();
    /// for _ in 0..3 {
    ///     cache.get(RenderKey::new("json"), || String::from("{}"));
    /// }
    /// assert_eq!(cache.count(), 1);
    /// ```
    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl fmt::Debug for RenderCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RenderCache")
    }
}

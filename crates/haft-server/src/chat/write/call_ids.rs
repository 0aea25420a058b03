//! The ids of the calls in one answer.

use std::collections::HashSet;

use crate::wire::new_id;

/// Gives every call an id of its own: the provider's, unless it has none or was used already.
#[derive(Debug, Default)]
pub(super) struct CallIds(HashSet<String>);

impl CallIds {
    pub(super) fn take(&mut self, given: &str) -> String {
        let id = if given.is_empty() || self.0.contains(given) {
            new_id("call")
        } else {
            given.to_owned()
        };
        self.0.insert(id.clone());
        id
    }
}

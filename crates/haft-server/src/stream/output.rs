//! The items of a response, each in its place.

use std::collections::HashSet;

use crate::wire::new_id;

use super::answer::Placing;
use super::items::{OutputItem, Place};

/// What is left of the items when a response is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeping {
    /// What the client may see, and all that the next response needs.
    Everything,
    /// What the client may see.
    Shown,
}

/// The items by their place; those that are not done yet are holes.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) items: Vec<Option<OutputItem>>,
    /// The ids that were given, also those of items that are not done.
    pub(super) taken: HashSet<String>,
}

impl Placing for Output {
    fn place(&mut self, id: Option<&str>, prefix: &str) -> Place {
        let is_ours = |id: &str| {
            let rest = id.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.starts_with('_')) && id.len() <= 128
        };
        let id = id.filter(|id| is_ours(id) && !self.taken.contains(*id));
        let item_id = id.map_or_else(|| new_id(prefix), str::to_owned);
        self.taken.insert(item_id.clone());
        self.items.push(None);
        Place {
            item_id,
            output_index: self.items.len() - 1,
        }
    }
}

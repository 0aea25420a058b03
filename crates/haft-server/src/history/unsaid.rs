//! What a search loads that nobody sees, kept with what is stored (`open-responses.md` §5.5).

use haft_core::Item;
use serde::{Deserialize, Serialize};

use super::marks::DEFERRAL;
use super::unseen::extra_of;

/// What a conversation remembers of tools that were held back without a word.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Unsaid {
    /// Whether there were too many tools, so that all were.
    #[serde(default)]
    pub(crate) all: bool,
    /// What was found, in order, by the names that the model calls it by.
    #[serde(default)]
    pub(crate) loaded: Vec<String>,
}

impl Unsaid {
    /// All that was remembered, in order; none if nothing was.
    pub(crate) fn of<'u>(told: impl Iterator<Item = &'u Option<Self>>) -> Option<Self> {
        let mut told = told.flatten().cloned();
        let mut unsaid = told.next()?;
        told.for_each(|later| unsaid.add(later));
        Some(unsaid)
    }

    /// Adds what was found behind what was found before.
    pub(crate) fn add(&mut self, later: Self) {
        self.all |= later.all;
        for name in later.loaded {
            if !self.loaded.contains(&name) {
                self.loaded.push(name);
            }
        }
    }
}

/// Takes what a stored item says about it: no model reads that.
pub(crate) fn take_unsaid(item: &mut Item) -> Option<Unsaid> {
    let unsaid = extra_of(item)?.shift_remove(DEFERRAL)?;
    serde_json::from_value(unsaid).ok()
}

//! What a conversation remembers of the tools that it was shown.

use haft_core::{Slice, ToolName};
use serde::{Deserialize, Serialize};

/// The tools that were picked, in the order in which they were.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Picked(pub(crate) Vec<ToolName>);

impl Slice for Picked {
    const NAME: &'static str = "picked_tools";
}

impl Picked {
    /// Picks one; says whether that is new.
    pub(crate) fn add(&mut self, name: &ToolName) -> bool {
        let is_new = !self.0.contains(name);
        if is_new {
            self.0.push(name.clone());
        }
        is_new
    }
}

/// What is held back, and what of it was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Deferral {
    /// Whether there were too many tools at the conversation's first request; none before it.
    pub(crate) too_many: Option<bool>,
    /// What was found, in order: callable to the end of the conversation.
    pub(crate) loaded: Vec<ToolName>,
}

impl Deferral {
    /// Adds what was found behind what was found before.
    pub(crate) fn remember(&mut self, names: &[ToolName]) {
        for name in names {
            if !self.loaded.contains(name) {
                self.loaded.push(name.clone());
            }
        }
    }
}

impl Slice for Deferral {
    const NAME: &'static str = "deferred_tools";
}

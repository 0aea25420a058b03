//! Which sections are to be seen otherwise than their authors said.

use std::collections::BTreeMap;

use haft_core::Slice;
use serde::{Deserialize, Serialize};

use super::visibility::Visibility;

/// Visibilities by path, in the order of the paths.
///
/// As a slice of session state it is what a conversation has opened: a call that is rolled back
/// opens nothing. A path that a prompt does not have is of no effect; see
/// [`Prompt::contains`](super::Prompt::contains).
///
/// ```
/// use haft_catalog::prompt::{Overrides, Visibility};
///
/// let opened = Overrides::new().with("ref.errors", Visibility::Full);
/// assert_eq!(serde_json::to_string(&opened)?, r#"{"ref.errors":"full"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Overrides(BTreeMap<String, Visibility>);

impl Overrides {
    /// None.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// These and one more.
    #[must_use]
    pub fn with(mut self, path: impl Into<String>, visibility: Visibility) -> Self {
        self.set(path, visibility);
        self
    }

    /// Sets one; the visibility that was set before.
    pub fn set(&mut self, path: impl Into<String>, visibility: Visibility) -> Option<Visibility> {
        self.0.insert(path.into(), visibility)
    }

    /// Takes one back; the visibility that was set.
    pub fn clear(&mut self, path: &str) -> Option<Visibility> {
        self.0.remove(path)
    }

    /// Takes all back.
    pub fn clear_all(&mut self) {
        self.0.clear();
    }

    /// What is set for exactly this path.
    pub fn get(&self, path: &str) -> Option<Visibility> {
        self.0.get(path).copied()
    }

    /// Whether exactly this path was opened.
    pub fn opens(&self, path: &str) -> bool {
        self.get(path) == Some(Visibility::Full)
    }

    /// All of them, by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Visibility)> {
        let entries = self.0.iter();
        entries.map(|(path, visibility)| (path.as_str(), *visibility))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Slice for Overrides {
    const NAME: &'static str = "visibility_overrides";
}

impl<P: Into<String>> FromIterator<(P, Visibility)> for Overrides {
    fn from_iter<I: IntoIterator<Item = (P, Visibility)>>(entries: I) -> Self {
        let entries = entries.into_iter();
        Self(entries.map(|(path, v)| (path.into(), v)).collect())
    }
}

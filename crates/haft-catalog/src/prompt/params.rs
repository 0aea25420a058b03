//! What is put into the placeholders of a prompt's texts.

use std::collections::BTreeMap;

/// Texts by the name of their placeholder.
///
/// ```
/// use haft_catalog::prompt::Params;
/// let params = Params::new().with("city", "Paris");
/// assert_eq!(params.get("city"), Some("Paris"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Params(BTreeMap<String, String>);

impl Params {
    /// None.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// These and one more; a later one of the same name replaces the earlier.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.set(name, value);
        self
    }

    /// Sets one.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// The text for a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let entries = self.0.iter();
        entries.map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Params {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(entries: I) -> Self {
        let entries = entries.into_iter();
        Self(entries.map(|(n, v)| (n.into(), v.into())).collect())
    }
}

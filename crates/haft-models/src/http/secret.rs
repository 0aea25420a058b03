//! A value that nobody may see.

use std::fmt;
use std::sync::Arc;

/// A key, token or other value that must not be shown. It has no `Display`, and its `Debug` says
/// nothing about it.
///
/// ```
/// use haft_models::http::Secret;
/// let key = Secret::new("sk-hunter2");
/// assert_eq!(format!("{key:?}"), "Secret");
/// assert_eq!(key.expose(), "sk-hunter2");
/// ```
#[derive(Clone, Default)]
pub struct Secret(Arc<str>);

impl Secret {
    /// A secret.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into().into())
    }

    /// The value, for whoever sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self::new(value)
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self::new(value)
    }
}

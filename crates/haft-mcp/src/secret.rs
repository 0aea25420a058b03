//! Values that nobody may see, and texts from which they are taken.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

const REDACTED: &str = "[redacted]";

/// Shorter values are not looked for: they occur in any text.
const MIN_SECRET_BYTES: usize = 6;

/// A token, header or variable that must not be shown. It has no `Display`, and its `Debug` says
/// nothing about it.
///
/// ```
/// use haft_mcp::Secret;
/// let token = Secret::new("hunter2-token");
/// assert_eq!(format!("{token:?}"), "Secret");
/// assert_eq!(token.expose(), "hunter2-token");
/// ```
#[derive(Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(from = "String")]
#[schemars(with = "String")]
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

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self::new(value)
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self::new(value)
    }
}

/// Knows the secrets of one server and takes them out of what is said about it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Redactor(Arc<[Secret]>);

impl Redactor {
    pub(crate) fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let mut known: Vec<_> = secrets.into_iter().collect();
        known.retain(|secret| secret.expose().len() >= MIN_SECRET_BYTES);
        // A secret inside another one must not break the longer one up.
        known.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        Self(known.into())
    }

    pub(crate) fn clean(&self, mut text: String) -> String {
        for secret in self.0.iter() {
            if text.contains(secret.expose()) {
                text = text.replace(secret.expose(), REDACTED);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_secret_goes_wherever_it_stands() {
        let redactor = Redactor::new(["abcdef".into(), "abcdefgh".into(), "x".into()]);
        let text = redactor.clean("abcdefgh, abcdef, x".into());
        assert_eq!(text, "[redacted], [redacted], x");
    }
}

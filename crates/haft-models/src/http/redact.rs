//! Taking secrets out of texts, by value.

use haft_core::ModelError;

use super::Secret;

const REDACTED: &str = "[redacted]";

/// Shorter values are not looked for: they occur in any text.
const MIN_SECRET_BYTES: usize = 6;

/// Knows the secrets of one endpoint and takes them out of what others wrote.
///
/// ```
/// use haft_models::http::{Redactor, Secret};
/// let redactor = Redactor::new([Secret::new("sk-hunter2")]);
/// assert_eq!(redactor.clean("bad key sk-hunter2".into()), "bad key [redacted]");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Redactor(Vec<Secret>);

impl Redactor {
    /// One that knows these.
    pub fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let mut known: Vec<_> = secrets.into_iter().collect();
        known.retain(|secret| secret.expose().len() >= MIN_SECRET_BYTES);
        // A secret inside another one must not break the longer one up.
        known.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        Self(known)
    }

    /// The text without them.
    pub fn clean(&self, mut text: String) -> String {
        for secret in &self.0 {
            if text.contains(secret.expose()) {
                text = text.replace(secret.expose(), REDACTED);
            }
        }
        text
    }

    /// The error without them.
    pub fn clean_error(&self, mut error: ModelError) -> ModelError {
        error.message = self.clean(error.message);
        error.code = error.code.map(|code| self.clean(code));
        error.operator_note = error.operator_note.map(|note| self.clean(note));
        error
    }

    /// How long the longest is.
    pub(super) fn longest(&self) -> usize {
        self.0.first().map_or(0, |secret| secret.expose().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::ModelErrorKind;

    #[test]
    fn every_secret_goes_wherever_it_stands() {
        let redactor = Redactor::new(["abcdef".into(), "abcdefgh".into(), "x".into()]);
        let error = ModelError::new(ModelErrorKind::Unauthorized, "abcdefgh, abcdef, x")
            .with_code("abcdef");
        let cleaned = redactor.clean_error(error);
        assert_eq!(cleaned.message, "[redacted], [redacted], x");
        assert_eq!(cleaned.code.as_deref(), Some("[redacted]"));
    }
}

//! Taking secrets out of texts, by value.

use bytes::Bytes;
use haft_core::ModelError;
use memchr::memmem;

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

/// Takes secrets out of bytes that come in chunks, also where one is cut in two.
///
/// Chunks without a secret pass as they are. Bytes are held back only where the end of a chunk can be
/// the beginning of a secret.
pub(super) struct Redacting {
    redactor: Redactor,
    held: Bytes,
}

impl Redacting {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            held: Bytes::new(),
        }
    }

    /// As much of the bytes so far as can be passed on.
    pub(super) fn pass(&mut self, chunk: Bytes) -> Bytes {
        let mut rest = if self.held.is_empty() {
            chunk
        } else {
            [&self.held[..], &chunk[..]].concat().into()
        };
        let mut cleaned: Vec<u8> = Vec::new();
        loop {
            let undecided = self.undecided(&rest);
            match self.first(&rest) {
                // A secret that begins inside of what is undecided may be a part of a longer one.
                Some((at, length)) if at < undecided => {
                    cleaned.extend_from_slice(&rest[..at]);
                    cleaned.extend_from_slice(REDACTED.as_bytes());
                    rest = rest.slice(at + length..);
                }
                _ => {
                    self.held = rest.split_off(undecided);
                    if cleaned.is_empty() {
                        return rest;
                    }
                    cleaned.extend_from_slice(&rest);
                    return cleaned.into();
                }
            }
        }
    }

    /// What was held back, when nothing follows.
    pub(super) fn finish(&mut self) -> Bytes {
        let held = String::from_utf8_lossy(&self.held).into_owned();
        let cleaned = self.redactor.clean(held.clone());
        let rest = std::mem::take(&mut self.held);
        if cleaned == held {
            rest
        } else {
            cleaned.into()
        }
    }

    /// Where the first secret stands, and how long it is; the longest of those that begin there.
    fn first(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        let secrets = self
            .redactor
            .0
            .iter()
            .map(|secret| secret.expose().as_bytes());
        let found = secrets.filter_map(|secret| Some((memmem::find(bytes, secret)?, secret.len())));
        found.min_by_key(|(at, length)| (*at, std::cmp::Reverse(*length)))
    }

    /// From where on the bytes can be the beginning of a secret that has not come to its end; their
    /// length if they cannot.
    fn undecided(&self, bytes: &[u8]) -> usize {
        let from = bytes
            .len()
            .saturating_sub(self.redactor.longest().saturating_sub(1));
        let begins = |tail: &[u8]| {
            let mut secrets = self
                .redactor
                .0
                .iter()
                .map(|secret| secret.expose().as_bytes());
            secrets.any(|secret| secret.len() > tail.len() && secret.starts_with(tail))
        };
        let mut places = from..bytes.len();
        places
            .find(|at| begins(&bytes[*at..]))
            .unwrap_or(bytes.len())
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

    fn redacted(secrets: &[&str], chunks: &[&[u8]]) -> String {
        let secrets = secrets.iter().map(|secret| Secret::new(*secret));
        let mut redacting = Redacting::new(Redactor::new(secrets));
        let mut passed = Vec::new();
        for chunk in chunks {
            passed.extend_from_slice(&redacting.pass(Bytes::copy_from_slice(chunk)));
        }
        passed.extend_from_slice(&redacting.finish());
        String::from_utf8(passed).unwrap()
    }

    #[test]
    fn secrets_are_taken_out_wherever_chunks_are_cut() {
        let text = "é sk-hunter2 sk-hunter2222 sk-hunt sk-sk-hunter2é unter2bad";
        let secrets = ["sk-hunter2", "sk-hunter2222", "unter2bad"];
        let expected = Redactor::new(secrets.map(Secret::new)).clean(text.into());
        assert_eq!(expected.matches(REDACTED).count(), 4, "{expected}");
        let bytes = text.as_bytes();
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let chunks = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(redacted(&secrets, &chunks), expected, "{first} {second}");
            }
        }
        let single: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(redacted(&secrets, &single), expected);
        assert_eq!(redacted(&[], &single), text);
    }

    #[test]
    fn chunk_without_a_secret_is_not_copied() {
        let mut redacting = Redacting::new(Redactor::new([Secret::new("sk-hunter2")]));
        let chunk = Bytes::from_static(b"data: {\"choices\":[]}\n\n");
        assert_eq!(redacting.pass(chunk.clone()).as_ptr(), chunk.as_ptr());
        assert!(redacting.finish().is_empty());
    }
}

//! What is asked, taken apart.

use std::collections::HashSet;

use super::features::{Features, Key};
use super::text::{Token, clean, tokens};

/// A query, read once.
pub(super) struct Query {
    /// As it was written, in one spelling.
    pub(super) text: String,
    pub(super) tokens: Vec<Token>,
    /// Distinct stems, stop words left out, in order of appearance: long requests repeat their words,
    /// and counting repeats lets the noise win.
    pub(super) words: Vec<Word>,
    /// The distinct runs of characters of all words, in order.
    pub(super) runs: Vec<Key>,
}

/// A word of a query.
pub(super) struct Word {
    pub(super) written: String,
    pub(super) stem: Key,
    pub(super) runs: Vec<Key>,
}

impl Query {
    pub(super) fn read(text: &str) -> Self {
        let text = clean(text).into_owned();
        let tokens = tokens(&text);
        let mut features = Features::new();
        let (mut words, mut all_runs) = (Vec::new(), Vec::new());
        let (mut written, mut stems) = (HashSet::new(), HashSet::new());
        for token in &tokens {
            if Features::is_stop_word(&token.word) || !written.insert(&token.word) {
                continue;
            }
            let start = all_runs.len();
            features.runs(&token.word, |run| all_runs.push(run));
            let stem = features.stem(&token.word);
            if stems.insert(stem) {
                words.push(Word {
                    written: token.word.clone(),
                    stem,
                    runs: all_runs[start..].to_vec(),
                });
            }
        }
        all_runs.sort_unstable();
        all_runs.dedup();
        Self {
            runs: all_runs,
            words,
            tokens,
            text,
        }
    }

    /// All words as one; what has no words is what it is.
    pub(super) fn squeezed(&self) -> String {
        if self.tokens.is_empty() {
            return self.text.trim().to_owned();
        }
        self.tokens.iter().map(|token| &*token.word).collect()
    }
}

//! What is looked up of a word: its stem and its runs of characters, as keys.

use rust_stemmers::{Algorithm, Stemmer};

use crate::keyword::STOP_WORDS;

/// Lengths of the runs of characters.
const SHORTEST: usize = 3;
const LONGEST: usize = 5;

/// A stem or a run of characters, as a well spread number. The same in every process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key(pub(super) u64);

/// A text on its way to a key.
#[derive(Clone, Copy)]
pub(super) struct Hashing(u64);

impl Hashing {
    pub(super) const START: Self = Self(0xcbf2_9ce4_8422_2325);

    /// With more text behind it. FNV-1a: texts are short, and it is the same everywhere.
    pub(super) fn and(self, text: &str) -> Self {
        Self(text.bytes().fold(self.0, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    pub(super) fn key(self) -> Key {
        Key(spread(self.0))
    }
}

impl Key {
    /// The key of a text: two of them share one with a probability of 2⁻⁶⁴.
    pub(super) fn of(text: &str) -> Self {
        Hashing::START.and(text).key()
    }

    /// The key of a run of at most five characters; exact where all of them are ASCII.
    fn of_run(run: &[char]) -> Self {
        if run.iter().all(char::is_ascii) {
            return Self(spread(
                run.iter().fold(0, |packed, &c| packed << 8 | u64::from(c)),
            ));
        }
        let hash = run.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &c| {
            (hash ^ u64::from(c)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(spread(hash | 1 << 63))
    }
}

/// A one-to-one mixing of all bits (splitmix64), so that keys can be found by their first bits.
fn spread(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Makes features of words.
pub(super) struct Features {
    stemmer: Stemmer,
    padded: Vec<char>,
}

impl Features {
    pub(super) fn new() -> Self {
        Self {
            stemmer: Stemmer::create(Algorithm::English),
            padded: Vec::with_capacity(64),
        }
    }

    /// Whether a word says nothing about what is wanted.
    pub(super) fn is_stop_word(word: &str) -> bool {
        // The list is sorted.
        STOP_WORDS.binary_search(&word).is_ok()
    }

    /// The stem's key. Words that are not plain ASCII have no English stem and stay as they are.
    pub(super) fn stem(&self, word: &str) -> Key {
        if word.is_ascii() {
            Key::of(&self.stemmer.stem(word))
        } else {
            Key::of(word)
        }
    }

    /// The runs of 3 to 5 characters inside the word with a blank on both sides; the shortest whole
    /// word is a run of its own.
    pub(super) fn runs(&mut self, word: &str, mut take: impl FnMut(Key)) {
        self.padded.clear();
        self.padded.push(' ');
        self.padded.extend(word.chars());
        self.padded.push(' ');
        for length in SHORTEST..=LONGEST {
            for run in self.padded.windows(length) {
                take(Key::of_run(run));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn inflections_share_a_stem() {
        let features = Features::new();
        assert_eq!(features.stem("searching"), features.stem("searches"));
        assert_ne!(features.stem("search"), features.stem("seat"));
    }

    #[test]
    fn runs_keep_to_the_padded_word() {
        let mut features = Features::new();
        let mut count = |word: &str| {
            let mut keys = HashSet::new();
            features.runs(word, |key| {
                keys.insert(key);
            });
            keys.len()
        };
        assert_eq!(count("a"), 1);
        assert_eq!(count("mail"), 4 + 3 + 2);
        assert_eq!(count("東京"), 2 + 1);
    }

    #[test]
    fn every_stop_word_is_known() {
        assert!(STOP_WORDS.iter().all(|word| Features::is_stop_word(word)));
        assert!(!Features::is_stop_word("weather"));
    }
}

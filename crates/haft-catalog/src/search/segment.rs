//! Some tools, read once: what they have is kept by key, and never changed.

use std::collections::HashMap;

use super::document::each_part;
use super::features::{Features, Key};
use super::names::NameTable;
use super::postings::{Posting, Postings};
use super::searchable::Searchable;
use super::text::{clean, each_token};

/// The postings of some tools.
#[derive(Debug)]
pub(super) struct Segment {
    /// What the tools were when they were read ([`Searchable::content_key`]), by number.
    pub(super) contents: Box<[u64]>,
    /// How long each tool's text is: the counts of its stems, in quarters.
    pub(super) lengths: Box<[u32]>,
    pub(super) stems: Postings,
    pub(super) runs: Postings,
    pub(super) names: NameTable,
}

impl Segment {
    /// How many tools it has, also those that are gone.
    pub(super) fn len(&self) -> usize {
        self.contents.len()
    }

    pub(super) fn bytes(&self) -> usize {
        let names = self.names.bytes();
        self.len() * 12 + self.stems.bytes() + self.runs.bytes() + names
    }

    /// Reads tools; each comes with its content key.
    pub(super) fn read<'t>(tools: impl Iterator<Item = (u64, &'t dyn Searchable)>) -> Self {
        let mut reader = Reader::new();
        let mut names = NameTable::builder();
        for (number, (content, tool)) in (0..).zip(tools) {
            reader.read(number, content, tool);
            names.add(number, tool);
        }
        Self {
            contents: reader.contents.into(),
            lengths: reader.lengths.into(),
            stems: reader.stems.finish(),
            runs: reader.runs.finish(),
            names: names.finish(),
        }
    }

    /// All of them as one, without the tools that are gone: `alive` says which are not.
    pub(super) fn merged(parts: &[(&Self, Vec<bool>)]) -> Self {
        let mut count = 0;
        let numbers: Vec<Vec<Option<u32>>> = parts
            .iter()
            .map(|(_, alive)| {
                let number = |&alive: &bool| {
                    alive.then(|| {
                        count += 1;
                        count - 1
                    })
                };
                alive.iter().map(number).collect()
            })
            .collect();
        let merge = |of: fn(&Self) -> &Postings| {
            let parts = parts.iter().zip(&numbers);
            let parts: Vec<_> = parts
                .map(|((part, _), numbers)| (of(part), numbers.as_slice()))
                .collect();
            Postings::merged(&parts)
        };
        let numbered = parts.iter().zip(&numbers);
        let names =
            NameTable::merged(numbered.map(|((part, _), numbers)| (&part.names, &**numbers)));
        Self {
            contents: kept(parts, |part| &part.contents),
            lengths: kept(parts, |part| &part.lengths),
            stems: merge(|part| &part.stems),
            runs: merge(|part| &part.runs),
            names,
        }
    }
}

fn kept<T: Copy>(parts: &[(&Segment, Vec<bool>)], of: fn(&Segment) -> &[T]) -> Box<[T]> {
    let all = parts
        .iter()
        .flat_map(|(part, alive)| of(part).iter().zip(alive));
    all.filter(|(_, alive)| **alive)
        .map(|(value, _)| *value)
        .collect()
}

/// Numbers keys and counts them, tool by tool.
#[derive(Default)]
struct Counter {
    numbers: HashMap<Key, u32>,
    keys: Vec<Key>,
    /// By number, for the tool that is being read.
    counts: Vec<u32>,
    touched: Vec<u32>,
    pairs: Vec<(u32, Posting)>,
}

impl Counter {
    fn number(&mut self, key: Key) -> u32 {
        *self.numbers.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.counts.push(0);
            u32::try_from(self.keys.len() - 1).unwrap_or(u32::MAX)
        })
    }

    fn add(&mut self, number: u32, count: u32) {
        let counted = &mut self.counts[number as usize];
        if *counted == 0 {
            self.touched.push(number);
        }
        *counted = counted.saturating_add(count);
    }

    /// Ends a tool; the sum of its counts.
    fn end(&mut self, tool: u32) -> u32 {
        let mut sum = 0_u32;
        for number in self.touched.drain(..) {
            let count = std::mem::take(&mut self.counts[number as usize]);
            sum = sum.saturating_add(count);
            self.pairs.push((number, Posting::new(tool, count)));
        }
        sum
    }

    fn finish(self) -> Postings {
        Postings::from_pairs(&self.keys, &self.pairs)
    }
}

/// What a word has; the same words come again and again.
struct Word {
    stem: u32,
    runs: Box<[u32]>,
}

struct Reader {
    features: Features,
    /// Stop words have nothing.
    words: HashMap<String, Option<Word>>,
    stems: Counter,
    runs: Counter,
    contents: Vec<u64>,
    lengths: Vec<u32>,
}

impl Reader {
    fn new() -> Self {
        Self {
            features: Features::new(),
            words: HashMap::new(),
            stems: Counter::default(),
            runs: Counter::default(),
            contents: Vec::new(),
            lengths: Vec::new(),
        }
    }

    fn read(&mut self, number: u32, content: u64, tool: &dyn Searchable) {
        each_part(tool, |text, weight| {
            each_token(&clean(text), |word, _, _| self.count(word, weight));
        });
        self.contents.push(content);
        self.lengths.push(self.stems.end(number));
        self.runs.end(number);
    }

    fn count(&mut self, word: &str, weight: u32) {
        if !self.words.contains_key(word) {
            let had = self.take_apart(word);
            self.words.insert(word.to_owned(), had);
        }
        let Some(Some(word)) = self.words.get(word) else {
            return;
        };
        self.stems.add(word.stem, weight);
        for &run in &word.runs {
            self.runs.add(run, weight);
        }
    }

    fn take_apart(&mut self, word: &str) -> Option<Word> {
        if Features::is_stop_word(word) {
            return None;
        }
        let stem = self.stems.number(self.features.stem(word));
        let mut runs = Vec::new();
        let numbers = &mut self.runs;
        self.features
            .runs(word, |key| runs.push(numbers.number(key)));
        Some(Word {
            stem,
            runs: runs.into(),
        })
    }
}

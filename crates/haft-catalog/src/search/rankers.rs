//! Two views on how well tools fit: by the stems of words, and by runs of characters.

use std::cell::RefCell;

use super::features::Key;
use super::index::Inner;
use super::parts::{GONE, run_counts, stem_score};
use super::postings::Postings;
use super::query::{Query, Word};

/// How many tools a ranker names.
pub(super) const DEPTH: usize = 100;

/// A word that is not in a text may be there in another form, if so much of it is: two fifths of its
/// runs of characters.
const SHARE: (usize, usize) = (2, 5);

/// Which tools may be found, by place in the list; none says all.
pub(super) type Allowed<'a> = Option<&'a [bool]>;

/// A tool and its score, which only compares with others of the same ranker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ranked {
    pub(super) score: f32,
    pub(super) position: u32,
}

/// A place to add up scores, one for each tool of all segments, all 0 between two searches.
#[derive(Default)]
struct Scratch {
    sums: Vec<f32>,
    best: Vec<Ranked>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// By the stems of words (BM25).
pub(super) fn by_stems(index: &Inner, query: &Query, allowed: Allowed<'_>) -> Vec<Ranked> {
    SCRATCH.with_borrow_mut(|scratch| {
        let mut sums = scratch.sums(index.slots);
        for part in &index.parts {
            let (own, rest) = sums.split_at_mut(part.segment.len());
            for word in &query.words {
                let Some(term) = part.segment.stems.find(word.stem) else {
                    continue;
                };
                let weight = part.stem_weights[term];
                for &posting in part.segment.stems.of(term) {
                    let tool = posting.tool();
                    own[tool] += stem_score(posting, weight, part.saturation[tool]);
                }
            }
            sums = rest;
        }
        scratch.best(index, allowed, |_, _, sum| sum)
    })
}

/// By runs of characters (TF-IDF, cosine).
pub(super) fn by_runs(index: &Inner, query: &Query, allowed: Allowed<'_>) -> Vec<Ranked> {
    let counts = run_counts();
    SCRATCH.with_borrow_mut(|scratch| {
        let mut sums = scratch.sums(index.slots);
        for part in &index.parts {
            let (own, rest) = sums.split_at_mut(part.segment.len());
            for &run in &query.runs {
                let Some(term) = part.segment.runs.find(run) else {
                    continue;
                };
                let weight = part.run_weights[term];
                if weight > 0.0 {
                    // Once for the query and once for the tool.
                    let weight = weight * weight;
                    for &posting in part.segment.runs.of(term) {
                        own[posting.tool()] += weight * counts[posting.count()];
                    }
                }
            }
            sums = rest;
        }
        scratch.best(index, allowed, |part, tool, sum| {
            sum * index.parts[part].scale[tool]
        })
    })
}

impl Scratch {
    fn sums(&mut self, slots: usize) -> &mut [f32] {
        if self.sums.len() < slots {
            self.sums.resize(slots, 0.0);
        }
        &mut self.sums[..slots]
    }

    /// The best tools of all, the best first, ties in the order of the list. Everything is 0 again
    /// afterwards.
    fn best(
        &mut self,
        index: &Inner,
        allowed: Allowed<'_>,
        score: impl Fn(usize, usize, f32) -> f32,
    ) -> Vec<Ranked> {
        let Self { sums, best } = self;
        best.clear();
        let mut threshold = 0.0;
        let mut sums = &mut sums[..index.slots];
        for (at, part) in index.parts.iter().enumerate() {
            let (own, rest) = sums.split_at_mut(part.segment.len());
            for (tool, (sum, &position)) in own.iter_mut().zip(&part.positions).enumerate() {
                if *sum == 0.0 {
                    continue;
                }
                let score = score(at, tool, std::mem::take(sum));
                // As good as the worst may still come before it in the list.
                if score < threshold || score <= 0.0 || position == GONE {
                    continue;
                }
                if allowed.is_some_and(|allowed| !allowed[position as usize]) {
                    continue;
                }
                best.push(Ranked { score, position });
                if best.len() == 4 * DEPTH {
                    best.select_nth_unstable_by(DEPTH - 1, order);
                    best.truncate(DEPTH);
                    threshold = best[DEPTH - 1].score;
                }
            }
            sums = rest;
        }
        best.sort_unstable_by(order);
        best.iter().take(DEPTH).copied().collect()
    }
}

/// Better first, then the order of the list. A total order: no two have one position.
#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that sorting asks for"
)]
pub(super) fn order(one: &Ranked, other: &Ranked) -> std::cmp::Ordering {
    let by_score = other.score.total_cmp(&one.score);
    by_score.then(one.position.cmp(&other.position))
}

/// Whether a tool has this stem.
pub(super) fn has_stem(index: &Inner, stem: Key, position: usize) -> bool {
    let (segment, number) = index.place(position);
    has(&segment.stems, stem, number)
}

fn has(postings: &Postings, key: Key, number: usize) -> bool {
    postings.find(key).is_some_and(|term| {
        let found = postings
            .of(term)
            .binary_search_by_key(&number, |it| it.tool());
        found.is_ok()
    })
}

/// The words of the query for which a tool was found, in their order: those that it has, else those
/// that it has in another form. None means that nothing speaks for it.
pub(super) fn matched<'q>(index: &Inner, query: &'q Query, position: usize) -> Vec<&'q str> {
    let (segment, number) = index.place(position);
    let words = query.words.iter();
    let exact = words.filter(|word| has(&segment.stems, word.stem, number));
    let exact: Vec<&str> = exact.map(|word| &*word.written).collect();
    if !exact.is_empty() {
        return exact;
    }
    let is_alike = |word: &&Word| {
        let found = word
            .runs
            .iter()
            .filter(|&&run| has(&segment.runs, run, number));
        found.count() * SHARE.1 >= word.runs.len() * SHARE.0
    };
    let alike = query.words.iter().filter(is_alike);
    alike.map(|word| &*word.written).collect()
}

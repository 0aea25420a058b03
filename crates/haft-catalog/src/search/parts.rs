//! The segments of an index, and what follows from all of them together: how rare a key is, how long a
//! text is among the others.

use std::sync::{Arc, LazyLock};

use super::document::UNIT;
use super::postings::{Posting, Postings, each_key};
use super::searchable::Searchable;
use super::segment::Segment;

/// BM25: how soon more of the same word says nothing new, and how much long texts are held back.
const K1: f32 = 1.2;
const B: f32 = 0.75;

/// Runs of characters that more than a quarter of all tools have tell nothing apart, and are the
/// dearest to look at. In a small list every one counts.
const COMMON_SHARE: usize = 4;
const COMMON_AT_LEAST: usize = 50;

/// The place of a tool that is not in the list any more.
pub(super) const GONE: u32 = u32::MAX;

/// A segment, and what it is worth in this index.
pub(super) struct Part {
    pub(super) segment: Arc<Segment>,
    /// For each tool of the segment its place in the list, or [`GONE`].
    pub(super) positions: Box<[u32]>,
    /// For each stem how much it tells.
    pub(super) stem_weights: Box<[f32]>,
    /// For each run of characters how much it tells; 0 for those that are too common.
    pub(super) run_weights: Box<[f32]>,
    /// For each tool how much of a word is needed to say half of what it can.
    pub(super) saturation: Box<[f32]>,
    /// For each tool the inverse of the length of its vector of runs.
    pub(super) scale: Box<[f32]>,
}

impl Part {
    pub(super) fn bytes(&self) -> usize {
        let weights = self.stem_weights.len() + self.run_weights.len();
        self.segment.bytes() + (weights + 3 * self.positions.len()) * 4
    }
}

/// A segment whose tools have places in a list, before it is known what it is worth there.
pub(super) struct Draft {
    segment: Arc<Segment>,
    positions: Vec<u32>,
    alive: usize,
}

impl Draft {
    /// The segment of a part, with all tools gone.
    pub(super) fn emptied(part: &Part) -> Self {
        Self {
            segment: Arc::clone(&part.segment),
            positions: vec![GONE; part.segment.len()],
            alive: 0,
        }
    }

    pub(super) fn put(&mut self, number: usize, position: usize) {
        // Lists are far shorter than 2³² - 1.
        self.positions[number] = u32::try_from(position).unwrap_or(GONE - 1);
        self.alive += 1;
    }

    fn is_half_gone(&self) -> bool {
        self.alive * 2 < self.segment.len()
    }

    /// Segments of a class are at most eight times as large as others of it.
    fn class(&self) -> u32 {
        self.alive.checked_ilog2().unwrap_or(0) / 3
    }

    fn merged(drafts: &[Self]) -> Self {
        let parts: Vec<_> = drafts
            .iter()
            .map(|draft| {
                let alive = draft.positions.iter().map(|&position| position != GONE);
                (&*draft.segment, alive.collect())
            })
            .collect();
        let positions = drafts.iter().flat_map(|draft| &draft.positions);
        let positions: Vec<u32> = positions.copied().filter(|&it| it != GONE).collect();
        Self {
            segment: Arc::new(Segment::merged(&parts)),
            alive: positions.len(),
            positions,
        }
    }
}

/// Reads new tools, given by their places in the list, with their content keys.
pub(super) fn read(fresh: &[(usize, u64)], tools: &[Arc<dyn Searchable>]) -> Vec<Draft> {
    let chunks = fresh.chunks(Posting::MAX_TOOLS);
    chunks
        .map(|chunk| {
            let segment = chunk
                .iter()
                .map(|&(position, content)| (content, &*tools[position]));
            let mut draft = Draft {
                segment: Arc::new(Segment::read(segment)),
                positions: vec![GONE; chunk.len()],
                alive: 0,
            };
            for (number, &(position, _)) in chunk.iter().enumerate() {
                draft.put(number, position);
            }
            draft
        })
        .collect()
}

/// The same tools in few segments: one of each class of size, none with mostly tools that are gone.
///
/// A tool is so merged a few times on its way to the largest segment, and a change of one costs what
/// the small segments weigh.
pub(super) fn tidied(drafts: Vec<Draft>) -> Vec<Draft> {
    let mut tidy: Vec<Draft> = Vec::new();
    let mut waiting: Vec<Draft> = drafts.into_iter().filter(|draft| draft.alive > 0).collect();
    while let Some(draft) = waiting.pop() {
        if draft.is_half_gone() {
            waiting.push(Draft::merged(&[draft]));
            continue;
        }
        let fits = |other: &Draft| draft.alive + other.alive <= Posting::MAX_TOOLS;
        let same = |other: &Draft| other.class() == draft.class() && fits(other);
        match tidy.iter().position(same) {
            Some(at) => waiting.push(Draft::merged(&[tidy.swap_remove(at), draft])),
            None => tidy.push(draft),
        }
    }
    tidy
}

/// What counts of how often a tool has a run of characters, by [`Posting::count`].
pub(super) fn run_counts() -> &'static [f32; Posting::MAX_COUNT as usize + 1] {
    static COUNTS: LazyLock<[f32; Posting::MAX_COUNT as usize + 1]> = LazyLock::new(|| {
        let mut quarters = 0..;
        std::array::from_fn(|_| {
            let times = in_units(quarters.next().unwrap_or(0));
            if times < 1.0 { times } else { 1.0 + times.ln() }
        })
    });
    &COUNTS
}

/// What a stem of this weight adds to the score of a tool of this saturation.
pub(super) fn stem_score(posting: Posting, weight: f32, saturation: f32) -> f32 {
    // At most 4,095, which is exact.
    let times = in_units(u32::try_from(posting.count()).unwrap_or(Posting::MAX_COUNT));
    weight * times * (K1 + 1.0) / (times + saturation)
}

#[allow(
    clippy::cast_precision_loss,
    reason = "weights need no more than 24 bits"
)]
fn in_units(quarters: u32) -> f32 {
    quarters as f32 / UNIT as f32
}

/// Finds out what each segment is worth among the others. `total` is the length of the list.
///
/// The sums are made key by key in the order of the keys, so that they are the same to the last bit
/// whichever segments the tools are in.
pub(super) fn weighed(drafts: Vec<Draft>, total: usize) -> Vec<Part> {
    let stem_weights = weights(
        &drafts,
        |segment| &segment.stems,
        |had| stem_weight(had, total),
    );
    let run_weights = weights(
        &drafts,
        |segment| &segment.runs,
        |had| run_weight(had, total),
    );
    let mean = mean_length(&drafts, total);
    let weights = stem_weights.into_iter().zip(run_weights);
    drafts
        .into_iter()
        .zip(weights)
        .map(|(draft, (stem_weights, run_weights))| Part {
            saturation: saturation(&draft.segment, mean),
            scale: scale(&draft.segment.runs, draft.segment.len(), &run_weights),
            segment: draft.segment,
            positions: draft.positions.into(),
            stem_weights: stem_weights.into(),
            run_weights: run_weights.into(),
        })
        .collect()
}

#[allow(
    clippy::cast_precision_loss,
    reason = "numbers of tools, far below 2^52"
)]
#[allow(
    clippy::cast_possible_truncation,
    reason = "weights need no more than 24 bits"
)]
fn stem_weight(had: usize, total: usize) -> f32 {
    let (had, total) = (had as f64, total as f64);
    (1.0 + (total - had + 0.5) / (had + 0.5)).ln() as f32
}

#[allow(
    clippy::cast_precision_loss,
    reason = "numbers of tools, far below 2^52"
)]
#[allow(
    clippy::cast_possible_truncation,
    reason = "weights need no more than 24 bits"
)]
fn run_weight(had: usize, total: usize) -> f32 {
    if had > (total / COMMON_SHARE).max(COMMON_AT_LEAST) {
        return 0.0;
    }
    (1.0 + ((1.0 + total as f64) / (1.0 + had as f64)).ln()) as f32
}

/// For each segment the weight of each of its keys, by how many tools of the list have it.
fn weights(
    drafts: &[Draft],
    of: fn(&Segment) -> &Postings,
    weight: impl Fn(usize) -> f32,
) -> Vec<Vec<f32>> {
    let parts: Vec<&Postings> = drafts.iter().map(|draft| of(&draft.segment)).collect();
    let mut weights: Vec<Vec<f32>> = parts.iter().map(|part| vec![0.0; part.len()]).collect();
    each_key(&parts, |_, terms| {
        let had = terms
            .iter()
            .map(|&(part, term)| alive(&drafts[part], parts[part].of(term)));
        let weight = weight(had.sum());
        for &(part, term) in terms {
            weights[part][term] = weight;
        }
    });
    weights
}

fn alive(draft: &Draft, postings: &[Posting]) -> usize {
    if draft.alive == draft.positions.len() {
        return postings.len();
    }
    let is_alive = |posting: &&Posting| draft.positions[posting.tool()] != GONE;
    postings.iter().filter(is_alive).count()
}

#[allow(
    clippy::cast_precision_loss,
    reason = "lengths of texts, far below 2^52"
)]
fn mean_length(drafts: &[Draft], total: usize) -> f64 {
    let lengths = drafts
        .iter()
        .flat_map(|draft| draft.segment.lengths.iter().zip(&draft.positions));
    let sum: u64 = lengths
        .filter(|(_, position)| **position != GONE)
        .map(|(&length, _)| u64::from(length))
        .sum();
    (sum as f64 / total.max(1) as f64).max(1.0)
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "weights need no more than 24 bits"
)]
fn saturation(segment: &Segment, mean: f64) -> Box<[f32]> {
    let relative = segment
        .lengths
        .iter()
        .map(|&length| (f64::from(length) / mean) as f32);
    relative.map(|length| K1 * (1.0 - B + B * length)).collect()
}

fn scale(runs: &Postings, tools: usize, weights: &[f32]) -> Box<[f32]> {
    let counts = run_counts();
    let mut squares = vec![0.0_f32; tools];
    for (term, &weight) in weights.iter().enumerate() {
        if weight > 0.0 {
            for &posting in runs.of(term) {
                let value = counts[posting.count()] * weight;
                squares[posting.tool()] += value * value;
            }
        }
    }
    let inverse = |square: f32| {
        if square > 0.0 {
            square.sqrt().recip()
        } else {
            0.0
        }
    };
    squares.into_iter().map(inverse).collect()
}

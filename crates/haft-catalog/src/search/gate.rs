//! How much an embedder is listened to: as much as words fail.

use super::index::Inner;
use super::query::Query;
use super::rankers::{Ranked, has_stem};

/// How many of the tools that words find are looked at.
const LOOKED_AT: usize = 5;
/// What the embedder counts where no word of the query is in any of them; each ranker counts 1.
const MOST: f64 = 4.0;
/// Where no more than this share of the words is missing, words are enough.
const ENOUGH: f64 = 0.5;

/// The weight of the embedder's ranking beside the two of the words: grows with the share of the query's
/// words that the tools found by words do not have.
///
/// Where words find the tools, an embedder of general language costs more than it brings; where they do
/// not, it is the better voice.
pub(super) fn weight(index: &Inner, query: &Query, lexical: &[Ranked]) -> f64 {
    let top = &lexical[..lexical.len().min(LOOKED_AT)];
    let is_missing = |stem| {
        !top.iter()
            .any(|it| has_stem(index, stem, it.position as usize))
    };
    let missing = query
        .words
        .iter()
        .filter(|word| is_missing(word.stem))
        .count();
    if query.words.is_empty() {
        // Nothing is asked that could mean anything.
        return 0.0;
    }
    #[allow(clippy::cast_precision_loss, reason = "numbers of words in a query")]
    let share = missing as f64 / query.words.len() as f64;
    MOST * ((share - ENOUGH) / (1.0 - ENOUGH)).max(0.0)
}

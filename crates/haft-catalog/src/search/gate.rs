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

#[cfg(test)]
mod tests {
    use haft_core::ToolDefinition;

    use super::*;
    use crate::search::SearchIndex;
    use crate::search::rankers::by_stems;

    fn weight_of(query: &str) -> f64 {
        let tool = |name: &str| {
            let object = serde_json::json!({"type": "object"});
            ToolDefinition::builder(name)
                .parameters(object)
                .build()
                .unwrap()
        };
        let index = SearchIndex::of([tool("get_weather"), tool("send_mail")]).inner;
        let query = Query::read(query);
        weight(&index, &query, &by_stems(&index, &query, None))
    }

    #[test]
    fn an_embedder_counts_as_much_as_words_fail() {
        let expected = [
            ("get the weather", 0.0),
            ("get weather forecasts tomorrow", 0.0),
            ("weather tomorrow morning outside", MOST / 2.0),
            ("umbrella needed", MOST),
            ("what is it", 0.0),
        ];
        for (query, weight) in expected {
            assert!((weight_of(query) - weight).abs() < 1e-9, "{query}");
        }
    }
}

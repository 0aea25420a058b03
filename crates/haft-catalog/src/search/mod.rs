//! Search: the few tools that a step needs, among thousands (`tool-selection.md`).
//!
//! What comes in: a list of tools ([`Searchable`]), and requests in words. What goes out: answers that
//! are the same for the same list and request, with the reason for every tool. The names that somebody
//! writes come first; then two rankers, one by the stems of words and one by runs of characters, are
//! fused by rank; then what the tools need is added. An [`Embedder`](haft_core::Embedder) can be a third
//! voice. Nothing is returned for which nothing speaks.

mod answer;
mod closure;
mod dense;
mod document;
mod exact;
mod features;
mod find;
mod fusion;
mod gate;
mod index;
mod names;
mod parts;
mod postings;
mod query;
mod rankers;
mod request;
mod scorer;
mod searchable;
mod sections;
mod segment;
mod split;
#[cfg(test)]
mod tests;
mod text;

pub use answer::{Reason, SearchAnswer, SearchHit, Shown, Withheld};
pub use dense::DenseSearch;
pub use find::{TokenCounter, estimated_tokens};
pub use index::SearchIndex;
pub use request::{DEFAULT_K, Detail, MAX_QUERIES, MAX_QUERY_CHARS, SearchError, SearchRequest};
pub use scorer::LexicalScorer;
pub use searchable::{PlacedTool, SearchSection, Searchable};
pub use sections::SectionHit;
pub use split::split_request;

//! Which section to open: the one with the best tool (`tool-selection.md` §6.3).

use std::collections::HashSet;

use super::find::FoundList;
use super::index::SearchIndex;
use super::query::Query;

/// A section that fits.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct SectionHit {
    /// Its key.
    pub section: String,
    /// The score of its best tool, with four decimals.
    pub score: f64,
    /// Its best tool.
    pub best: String,
}

impl SearchIndex {
    /// The `k` sections that fit best, each by its best tool: big sections have no advantage.
    pub fn search_sections(&self, query: &str, k: usize) -> Vec<SectionHit> {
        let query = Query::read(query);
        let list = FoundList::of(&self.inner, &query, None, |_| None);
        let mut seen = HashSet::new();
        list.good(&self.inner)
            .filter_map(|(found, _)| {
                let tool = &self.inner.tools[found.position as usize];
                let section = tool.section()?;
                seen.insert(&section.key).then(|| SectionHit {
                    section: section.key.clone(),
                    score: (found.score * 10_000.0).round() / 10_000.0,
                    best: tool.name().to_owned(),
                })
            })
            .take(k)
            .collect()
    }
}

//! The `lexical` scorer: search as a seam (`dynamic-tools.md` §9).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use haft_core::{Score, Scorer, Scoring, ToolDefinition};

use super::find::FoundList;
use super::index::SearchIndex;
use super::query::Query;
use super::searchable::Searchable;

/// Scores tools as search ranks them; an exact name has 1.
///
/// It remembers the tools that it saw last, so that one that is kept reads each tool once.
#[derive(Default)]
pub struct LexicalScorer {
    last: Mutex<SearchIndex>,
}

impl LexicalScorer {
    /// The name in a result's provenance.
    pub const NAME: &'static str = "lexical";

    /// A scorer that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    fn index(&self, tools: &[Arc<ToolDefinition>]) -> SearchIndex {
        let tools = tools
            .iter()
            .map(|tool| Arc::clone(tool) as Arc<dyn Searchable>);
        let tools: Vec<_> = tools.collect();
        // An index is whole whenever it can be seen, also after a panic elsewhere.
        let last = self
            .last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if last.is_of(&tools) {
            return last;
        }
        let index = last.following(tools);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = index.clone();
        index
    }
}

impl Scorer for LexicalScorer {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn prepare<'a>(&'a self, query: &'a str, tools: &'a [Arc<ToolDefinition>]) -> Scoring<'a> {
        let index = self.index(tools);
        let query = Query::read(query);
        let list = FoundList::of(&index.inner, &query, None, |_| None);
        let scores: HashMap<&str, Score> = list
            .good(&index.inner)
            .filter_map(|(found, words)| {
                let tool = tools.get(found.position as usize)?;
                let reason = (!words.is_empty()).then(|| format!("matched: {}", words.join(", ")));
                let score = Score {
                    value: found.score,
                    reason,
                    ..Score::default()
                };
                Some((tool.name().as_str(), score))
            })
            .collect();
        Box::new(move |tool| {
            Ok(scores
                .get(tool.name().as_str())
                .cloned()
                .unwrap_or_default())
        })
    }
}

impl fmt::Debug for LexicalScorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LexicalScorer").finish_non_exhaustive()
    }
}

//! Who finds tools: by words and pieces of words, in this process.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use haft_catalog::Binding;
use haft_catalog::search::{SearchIndex, SearchRequest};
use haft_core::{BoxFuture, ToolDefinition, ToolError};

use super::search::ToolFinder;

/// How many indexes are kept for the next run with the same tools.
const KEPT: usize = 4;

/// From how many tools on an index is built beside the runtime, not in it.
const MANY: usize = 500;

/// Finds by words and pieces of words.
pub(crate) struct LexicalFinder {
    tools: Arc<[Arc<ToolDefinition>]>,
}

impl LexicalFinder {
    /// Over what a binding holds back.
    pub(crate) fn over(binding: &Binding) -> Self {
        Self {
            tools: binding.held().cloned().collect(),
        }
    }
}

impl ToolFinder for LexicalFinder {
    fn find<'a>(
        &'a self,
        query: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<ToolDefinition>>, ToolError>> {
        Box::pin(async move {
            let tools = Arc::clone(&self.tools);
            let index = if tools.len() < MANY {
                index_of(&tools)
            } else {
                let built = tokio::task::spawn_blocking(move || index_of(&tools));
                built
                    .await
                    .map_err(|error| ToolError::new(error.to_string()))?
            };
            let answer = index.search(&SearchRequest::new(query).k(limit));
            let answer = answer.map_err(|error| ToolError::new(error.to_string()))?;
            let hits = answer.hits.iter();
            Ok(hits
                .filter_map(|hit| self.tools.get(hit.position).cloned())
                .collect())
        })
    }
}

/// The index of these tools: that of an earlier run, one that follows it, or a new one.
fn index_of(tools: &[Arc<ToolDefinition>]) -> SearchIndex {
    static INDEXES: Mutex<VecDeque<(u64, SearchIndex)>> = Mutex::new(VecDeque::new());
    let key = key_of(tools);
    // Whole entries are put in and taken out: a panic in between leaves the others.
    let lock = || INDEXES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, index)) = lock().iter().find(|(known, _)| *known == key) {
        return index.clone();
    }
    let index = SearchIndex::of(tools.iter().cloned());
    let mut indexes = lock();
    indexes.push_front((key, index.clone()));
    indexes.truncate(KEPT);
    index
}

fn key_of(tools: &[Arc<ToolDefinition>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for tool in tools {
        tool.fingerprint().hash(&mut hasher);
    }
    hasher.finish()
}

//! An embedder as a third voice, heard where words are not enough (`tool-selection.md` §6.6).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::{Embedder, ModelError, ModelErrorKind};

use super::answer::SearchAnswer;
use super::document::beginning;
use super::find::{Dense, TokenCounter, estimated_tokens};
use super::gate::weight;
use super::index::{Inner, SearchIndex};
use super::rankers::{DEPTH, Ranked, order};
use super::request::{SearchError, SearchRequest};
use super::searchable::Searchable;
use super::text::{clean, each_token};

/// How many texts are embedded at once.
const BATCH: usize = 64;
/// Everything is a little near to everything: tools that are less near than this share of the nearest
/// are not named.
const NEAR: f32 = 0.5;
/// How much of a description is embedded, in characters.
const MAX_DESCRIPTION: usize = 600;

/// Search with an embedder beside the two rankers.
///
/// The vectors of tools are made once and kept by what the tools say. If the embedder fails, the search
/// goes on without it.
pub struct DenseSearch {
    embedder: Arc<dyn Embedder>,
    vectors: Mutex<HashMap<u64, Arc<[f32]>>>,
}

impl DenseSearch {
    /// With this embedder.
    pub fn new(embedder: Arc<dyn Embedder>) -> Self {
        Self {
            embedder,
            vectors: Mutex::default(),
        }
    }

    /// Makes the vectors of all tools that have none yet, so that a search need not; how many it made.
    pub async fn prepare(&self, index: &SearchIndex) -> Result<usize, ModelError> {
        let inner = &*index.inner;
        let missing: Vec<(u64, String)> = {
            let vectors = self.vectors();
            (0..inner.tools.len())
                .map(|position| (content_of(inner, position), position))
                .filter(|(content, _)| !vectors.contains_key(content))
                .map(|(content, position)| (content, text_of(&*inner.tools[position])))
                .collect()
        };
        for batch in missing.chunks(BATCH) {
            let texts: Vec<&str> = batch.iter().map(|(_, text)| &**text).collect();
            let made = self.embed(&texts).await?;
            let contents = batch.iter().map(|&(content, _)| content);
            self.vectors().extend(contents.zip(made));
        }
        self.forget_others(inner);
        Ok(missing.len())
    }

    /// The tools that fit best, by words and by meaning.
    pub async fn search(
        &self,
        index: &SearchIndex,
        request: &SearchRequest,
    ) -> Result<SearchAnswer, SearchError> {
        self.search_counting(index, request, estimated_tokens).await
    }

    /// As [`search`](Self::search), with tokens counted by somebody who knows.
    pub async fn search_counting(
        &self,
        index: &SearchIndex,
        request: &SearchRequest,
        count: TokenCounter,
    ) -> Result<SearchAnswer, SearchError> {
        request.check()?;
        let similarities = match self.similarities(index, request).await {
            Ok(similarities) => similarities,
            Err(error) => {
                let embedder = self.embedder.name();
                tracing::warn!(embedder, %error, "the search goes on without its embedder");
                return index.search_counting(request, count);
            }
        };
        let inner = &*index.inner;
        index.search_with(request, count, |at, query, lexical, allowed| {
            let weight = weight(inner, query, lexical);
            let ranking = nearest(similarities.get(at)?, allowed);
            (weight > 0.0).then_some(Dense { ranking, weight })
        })
    }

    /// For each query how near each tool is.
    async fn similarities(
        &self,
        index: &SearchIndex,
        request: &SearchRequest,
    ) -> Result<Vec<Vec<f32>>, ModelError> {
        self.prepare(index).await?;
        let queries: Vec<&str> = request.queries.iter().map(String::as_str).collect();
        let queries = self.embed(&queries).await?;
        let inner = &*index.inner;
        let vectors = self.vectors();
        let similarity = |query: &[f32], position: usize| {
            let vector = vectors.get(&content_of(inner, position));
            vector.map_or(0.0, |vector| dot(query, vector))
        };
        let tools = 0..inner.tools.len();
        let of_query = |query: &Arc<[f32]>| tools.clone().map(|at| similarity(query, at)).collect();
        Ok(queries.iter().map(of_query).collect())
    }

    /// Vectors of length 1, one for each text.
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Arc<[f32]>>, ModelError> {
        let vectors = self.embedder.embed(texts).await?;
        if vectors.len() != texts.len() {
            let words = format!("{} vectors came for {} texts", vectors.len(), texts.len());
            return Err(ModelError::new(ModelErrorKind::Protocol, words));
        }
        Ok(vectors.into_iter().map(of_length_1).collect())
    }

    /// Vectors of tools that are gone take memory; they are dropped when they are most of it.
    fn forget_others(&self, inner: &Inner) {
        let mut vectors = self.vectors();
        if vectors.len() > 2 * inner.tools.len() + BATCH {
            let tools = 0..inner.tools.len();
            let kept: std::collections::HashSet<u64> =
                tools.map(|at| content_of(inner, at)).collect();
            vectors.retain(|content, _| kept.contains(content));
        }
    }

    fn vectors(&self) -> MutexGuard<'_, HashMap<u64, Arc<[f32]>>> {
        // Each entry is whole by itself, also after a panic elsewhere.
        self.vectors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for DenseSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DenseSearch")
            .field("embedder", &self.embedder.name())
            .field("vectors", &self.vectors().len())
            .finish()
    }
}

fn content_of(inner: &Inner, position: usize) -> u64 {
    let (segment, number) = inner.place(position);
    segment.contents[number]
}

/// What is embedded of a tool: its name in words, its title and its description.
fn text_of(tool: &dyn Searchable) -> String {
    let mut text = String::new();
    each_token(&clean(tool.name()), |word, _, _| {
        text.push_str(word);
        text.push(' ');
    });
    let title = tool.title().into_iter();
    let description = tool.description().map(|it| beginning(it, MAX_DESCRIPTION));
    for part in title.chain(description) {
        text.truncate(text.trim_end().len());
        text.push_str(". ");
        text.push_str(&clean(part));
    }
    text
}

fn of_length_1(mut vector: Vec<f32>) -> Arc<[f32]> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length.is_finite() && length > 0.0 {
        for x in &mut vector {
            *x /= length;
        }
        vector.into()
    } else {
        // Not a direction; near nothing.
        Arc::default()
    }
}

fn dot(one: &[f32], other: &[f32]) -> f32 {
    if one.len() == other.len() {
        one.iter().zip(other).map(|(a, b)| a * b).sum()
    } else {
        0.0
    }
}

fn nearest(similarities: &[f32], allowed: Option<&[bool]>) -> Vec<Ranked> {
    let mut ranked: Vec<Ranked> = (0..)
        .zip(similarities)
        .filter(|&(position, &score)| {
            let position: u32 = position;
            score > 0.0 && allowed.is_none_or(|allowed| allowed[position as usize])
        })
        .map(|(position, &score)| Ranked { score, position })
        .collect();
    ranked.sort_unstable_by(order);
    ranked.truncate(DEPTH);
    let best = ranked.first().map_or(0.0, |nearest| nearest.score);
    ranked.retain(|it| it.score >= best * NEAR);
    ranked
}

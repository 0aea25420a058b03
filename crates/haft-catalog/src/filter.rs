//! The request-time filter: which few tools fit, before the first request (`dynamic-tools.md` §9).
//!
//! Not the model-facing `pick_tools`, and not the search of `tool-selection.md`; the three share
//! scorers. It never runs, builds or changes a tool.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use haft_core::{Score, ScoreError, Scorer, ToolDefinition, caught};
use serde_json::{Map, Value};

use crate::keyword::KeywordScorer;
use crate::search::LexicalScorer;

/// The most tools that `keyword` scores if nobody says who does.
const KEYWORD_UP_TO: usize = 20;

/// How [`filter_tools`] chooses.
#[derive(Clone)]
pub struct FilterOptions {
    /// The most tools to return.
    pub max_candidates: usize,
    /// The least score to return; 0 admits tools that match nothing.
    pub min_score: f64,
    /// Whether tools annotated `safe: false` are considered.
    pub allow_unsafe: bool,
    /// The longest that scoring may take altogether. A scorer that is still at work then is left to
    /// itself on a thread of its own, and stops at its next tool.
    pub timeout: Option<Duration>,
    /// Who scores. By default `keyword` up to 20 tools and `lexical` above. Whoever filters the same
    /// large list again and again keeps a [`LexicalScorer`], which reads it once.
    pub scorer: Option<Arc<dyn Scorer>>,
}

impl Default for FilterOptions {
    fn default() -> Self {
        Self {
            max_candidates: 3,
            min_score: 0.05,
            allow_unsafe: false,
            timeout: None,
            scorer: None,
        }
    }
}

impl fmt::Debug for FilterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterOptions")
            .field("max_candidates", &self.max_candidates)
            .field("min_score", &self.min_score)
            .field("allow_unsafe", &self.allow_unsafe)
            .field("timeout", &self.timeout)
            .field("scorer", &self.scorer.as_ref().map(|scorer| scorer.name()))
            .finish()
    }
}

/// A tool that fits, how well, and who says so.
#[derive(Debug, Clone, PartialEq)]
pub struct PickResult {
    /// The tool.
    pub tool: Arc<ToolDefinition>,
    /// From 0 to 1.
    pub score: f64,
    /// Why; absent for built-in scorers when the score is 0, `timeout` when time ran out.
    pub reason: Option<String>,
    /// Where the score comes from.
    pub provenance: PickProvenance,
}

/// Where a score comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct PickProvenance {
    /// The scorer's name.
    pub scorer: String,
    /// What else it said; `error` if it could not rate the tool.
    pub details: Map<String, Value>,
}

/// The tools that fit an input best. The same input gives the same output.
///
/// The input is the user's text, or any JSON value, which is then read as its compact text. Nothing
/// above the threshold means nothing, never everything.
///
/// ```
/// use haft_catalog::{FilterOptions, filter_tools};
/// use haft_core::ToolDefinition;
///
/// let weather = ToolDefinition::builder("get_weather")
///     .description("Get the weather for a city")
///     .parameters(serde_json::json!({"type": "object"}))
///     .build()?;
/// let picked = filter_tools("weather in Oslo?", [weather], &FilterOptions::default());
/// assert_eq!(picked[0].score, 0.5);
/// assert_eq!(picked[0].reason.as_deref(), Some("matched: weather"));
/// # Ok::<(), haft_core::DefinitionError>(())
/// ```
pub fn filter_tools<T: Borrow<Arc<ToolDefinition>>>(
    input: impl Into<Value>,
    tools: impl IntoIterator<Item = T>,
    options: &FilterOptions,
) -> Vec<PickResult> {
    let query = match input.into() {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let eligible = eligible(tools, options.allow_unsafe);
    let scorer = options
        .scorer
        .clone()
        .unwrap_or_else(|| usual_scorer(eligible.len()));
    let Some(ratings) = rate(&query, &eligible, &scorer, options.timeout) else {
        return out_of_time(eligible, &*scorer, options.max_candidates);
    };
    let mut picked: Vec<_> = eligible
        .into_iter()
        .zip(ratings)
        .filter(|(_, score)| score.value >= options.min_score)
        .map(|(tool, score)| result(tool, score, scorer.name()))
        .collect();
    // Stable: ties keep the order of the tools. All scores are numbers between 0 and 1.
    picked.sort_by(|a, b| b.score.total_cmp(&a.score));
    picked.truncate(options.max_candidates);
    picked
}

/// Few tools need no ranking; among many, sharing words is too common to tell them apart.
fn usual_scorer(tools: usize) -> Arc<dyn Scorer> {
    if tools <= KEYWORD_UP_TO {
        Arc::new(KeywordScorer)
    } else {
        Arc::new(LexicalScorer::new())
    }
}

/// The first of each name, without unsafe tools unless they are allowed.
fn eligible<T: Borrow<Arc<ToolDefinition>>>(
    tools: impl IntoIterator<Item = T>,
    allow_unsafe: bool,
) -> Vec<Arc<ToolDefinition>> {
    let mut seen = HashSet::new();
    tools
        .into_iter()
        .map(|tool| Arc::clone(tool.borrow()))
        .filter(|tool| seen.insert(tool.name().clone()))
        .filter(|tool| allow_unsafe || tool.annotations().safe != Some(false))
        .collect()
}

fn out_of_time(
    eligible: Vec<Arc<ToolDefinition>>,
    scorer: &dyn Scorer,
    max_candidates: usize,
) -> Vec<PickResult> {
    let score = Score {
        reason: Some("timeout".to_owned()),
        ..Score::default()
    };
    eligible
        .into_iter()
        .take(max_candidates)
        .map(|tool| result(tool, score.clone(), scorer.name()))
        .collect()
}

fn result(tool: Arc<ToolDefinition>, score: Score, scorer: &str) -> PickResult {
    PickResult {
        tool,
        score: score.value,
        reason: score.reason,
        provenance: PickProvenance {
            scorer: scorer.to_owned(),
            details: score.details,
        },
    }
}

/// One score per tool, or nothing if time ran out.
fn rate(
    query: &str,
    tools: &[Arc<ToolDefinition>],
    scorer: &Arc<dyn Scorer>,
    limit: Option<Duration>,
) -> Option<Vec<Score>> {
    let Some(limit) = limit else {
        return rate_all(query, tools, &**scorer, &AtomicBool::new(false));
    };
    if limit.is_zero() {
        return None;
    }
    let expired = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = mpsc::sync_channel(1);
    let work = {
        let (query, tools) = (query.to_owned(), tools.to_vec());
        let (scorer, expired) = (Arc::clone(scorer), Arc::clone(&expired));
        // Nobody listens any more if time ran out.
        move || drop(sender.send(rate_all(&query, &tools, &*scorer, &expired)))
    };
    // A scorer is foreign code and cannot be interrupted, only left behind.
    let spawned = thread::Builder::new()
        .name("haft-scorer".to_owned())
        .spawn(work);
    let ratings = match spawned {
        Ok(_) => receiver.recv_timeout(limit).ok().flatten(),
        Err(error) => {
            tracing::warn!(%error, "no thread to score on; counted as a timeout");
            None
        }
    };
    expired.store(true, Ordering::Relaxed);
    ratings
}

fn rate_all(
    query: &str,
    tools: &[Arc<ToolDefinition>],
    scorer: &dyn Scorer,
    expired: &AtomicBool,
) -> Option<Vec<Score>> {
    let scoring = match caught(|| scorer.prepare(query, tools)) {
        Ok(scoring) => scoring,
        Err(panic) => return Some(vec![unrated(format!("it panicked: {panic}")); tools.len()]),
    };
    tools
        .iter()
        .map(|tool| {
            if expired.load(Ordering::Relaxed) {
                return None;
            }
            let rated = caught(|| scoring(tool));
            Some(rated.map_or_else(|panic| unrated(format!("it panicked: {panic}")), clean))
        })
        .collect()
}

/// A number between 0 and 1, whatever the scorer said.
fn clean(rated: Result<Score, ScoreError>) -> Score {
    match rated {
        Ok(score) if score.value.is_nan() => unrated("the score is not a number".to_owned()),
        Ok(mut score) => {
            score.value = score.value.clamp(0.0, 1.0);
            score
        }
        Err(error) => unrated(error.reason),
    }
}

fn unrated(error: String) -> Score {
    Score {
        details: Map::from_iter([("error".to_owned(), Value::String(error))]),
        ..Score::default()
    }
}

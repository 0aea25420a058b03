//! The scorer seam: how well a tool fits what was asked.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::definition::ToolDefinition;

/// Rates tools against a query, each by itself: one that cannot be rated spoils no other.
///
/// ```
/// use haft_core::{Score, Scorer, ToolDefinition, scorer_fn};
///
/// let by_name = scorer_fn("by-name", |query, tool| {
///     Ok(if tool.name().as_str() == query { 1.0 } else { 0.0 })
/// });
/// let ping = ToolDefinition::builder("ping")
///     .parameters(serde_json::json!({"type": "object"}))
///     .build()?;
/// let tools = [ping];
/// let scoring = by_name.prepare("ping", &tools);
/// assert_eq!(scoring(&tools[0]), Ok(Score::from(1.0)));
/// # Ok::<(), haft_core::DefinitionError>(())
/// ```
pub trait Scorer: Send + Sync + 'static {
    /// The name that a result's provenance records.
    fn name(&self) -> &str;

    /// Reads the query and the tools once; what comes back rates one of these tools.
    fn prepare<'a>(&'a self, query: &'a str, tools: &'a [Arc<ToolDefinition>]) -> Scoring<'a>;
}

/// Rates one tool. Names are unique among the tools that it was prepared for.
pub type Scoring<'a> = Box<dyn Fn(&ToolDefinition) -> Result<Score, ScoreError> + 'a>;

/// How well a tool fits, and why.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Score {
    /// From 0 (not at all) to 1 (perfectly).
    pub value: f64,
    /// Why, for people.
    pub reason: Option<String>,
    /// What else the scorer knows, for the record.
    pub details: Map<String, Value>,
}

impl From<f64> for Score {
    fn from(value: f64) -> Self {
        Self {
            value,
            ..Self::default()
        }
    }
}

/// A tool that could not be rated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the tool could not be rated: {reason}")]
pub struct ScoreError {
    /// What went wrong.
    pub reason: String,
}

/// Makes a scorer of a closure over the query and one tool.
pub fn scorer_fn<F>(name: impl Into<String>, score: F) -> Arc<dyn Scorer>
where
    F: Fn(&str, &ToolDefinition) -> Result<f64, ScoreError> + Send + Sync + 'static,
{
    Arc::new(ScorerFn {
        name: name.into(),
        score,
    })
}

struct ScorerFn<F> {
    name: String,
    score: F,
}

impl<F> Scorer for ScorerFn<F>
where
    F: Fn(&str, &ToolDefinition) -> Result<f64, ScoreError> + Send + Sync + 'static,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn prepare<'a>(&'a self, query: &'a str, _: &'a [Arc<ToolDefinition>]) -> Scoring<'a> {
        Box::new(move |tool| (self.score)(query, tool).map(Score::from))
    }
}

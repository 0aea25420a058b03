//! What a search gives (`tool-selection.md` §7).

use serde::Serialize;
use serde_json::Value;

/// Why a tool was returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// Its name is in the query.
    Exact,
    /// Its name begins with the query.
    Prefix,
    /// Its text fits.
    Lexical,
    /// An embedder says that it fits.
    Dense,
    /// Another one needs it.
    Dependency,
    /// It is always there.
    Pinned,
}

/// What is said of a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Shown {
    /// Nothing but the name.
    Name,
    /// One line.
    Brief {
        /// The line.
        brief: String,
    },
    /// The full definition.
    Definition {
        /// As a model reads it.
        definition: Value,
    },
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SearchHit {
    /// The name by which it is called.
    pub name: String,
    /// The label of its server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The key of its section.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// From 0 to 1, with four decimals.
    pub score: f64,
    /// Why it is here.
    pub reason: Reason,
    /// The words of the query that speak for it.
    pub matched: Vec<String>,
    /// The tool that needs it, if it is here for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// What is said of it.
    #[serde(flatten)]
    pub shown: Shown,
    /// Where it is in the list of tools.
    #[serde(skip)]
    pub position: usize,
}

/// A tool that was asked for by name and is not returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Withheld {
    /// The name by which it would be called.
    pub name: String,
    /// Why not.
    pub why: String,
}

/// The answer to a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SearchAnswer {
    /// The tools: those that are always there, then those that fit, the best first, then those that
    /// they need.
    pub hits: Vec<SearchHit>,
    /// How many tools could have been found.
    pub total_tools: usize,
    /// What the answer costs, in tokens.
    pub shown_tokens: usize,
    /// Whether there is nothing more that fits.
    pub exhausted: bool,
    /// Tools that were asked for by name and must not be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<Withheld>,
}

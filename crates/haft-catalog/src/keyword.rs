//! The `keyword` scorer: which share of the query's words a tool's text has (`dynamic-tools.md` §9).

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft_core::{Score, Scorer, Scoring, ToolDefinition};

use crate::filter::{PickProvenance, PickResult};

/// Words that say nothing about what is wanted.
pub(crate) const STOP_WORDS: [&str; 32] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "how", "i", "in",
    "is", "it", "me", "my", "of", "on", "or", "please", "that", "the", "this", "to", "was", "what",
    "with", "you", "your",
];

/// Scores a tool by the share of the query's distinct words that occur in its name, description
/// and tags.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeywordScorer;

impl KeywordScorer {
    /// The name in a result's provenance.
    pub const NAME: &'static str = "keyword";
}

impl Scorer for KeywordScorer {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn prepare<'a>(&'a self, query: &'a str, _: &'a [Arc<ToolDefinition>]) -> Scoring<'a> {
        let wanted = distinct(tokens(query));
        Box::new(move |tool| {
            let text: HashSet<_> = tokens(&text_of(tool)).collect();
            let matched = wanted.iter().filter(|token| text.contains(*token));
            Ok(score(&wanted, matched))
        })
    }
}

/// The `k` best tools for a query by the `keyword` score, best first; ties keep the order of
/// `tools`, and tools that match nothing are left out.
///
/// ```
/// use haft_catalog::rank;
/// use haft_core::ToolDefinition;
///
/// # fn tool(name: &str) -> std::sync::Arc<ToolDefinition> {
/// #     let object = serde_json::json!({"type": "object"});
/// #     ToolDefinition::builder(name).parameters(object).build().unwrap()
/// # }
/// let tools = [tool("send_mail"), tool("getWeather")];
/// let best = rank("what is the weather", &tools, 5);
/// assert_eq!(best.len(), 1);
/// assert_eq!(best[0].tool.name().as_str(), "getWeather");
/// ```
pub fn rank<T: Borrow<Arc<ToolDefinition>>>(
    query: &str,
    tools: impl IntoIterator<Item = T>,
    k: usize,
) -> Vec<PickResult> {
    KeywordIndex::new(tools).rank(query, k)
}

/// The words of many tools, read once: for many queries over the same tools.
#[derive(Debug, Clone, Default)]
pub struct KeywordIndex {
    tools: Vec<Arc<ToolDefinition>>,
    /// For each word the positions of the tools that have it, in order.
    postings: HashMap<String, Vec<usize>>,
}

impl KeywordIndex {
    /// Reads the tools.
    pub fn new<T: Borrow<Arc<ToolDefinition>>>(tools: impl IntoIterator<Item = T>) -> Self {
        let mut index = Self::default();
        for (position, tool) in tools.into_iter().enumerate() {
            let tool = tool.borrow();
            for token in distinct(tokens(&text_of(tool))) {
                index.postings.entry(token).or_default().push(position);
            }
            index.tools.push(Arc::clone(tool));
        }
        index
    }

    /// The `k` best tools, as [`rank`] finds them.
    pub fn rank(&self, query: &str, k: usize) -> Vec<PickResult> {
        let wanted = distinct(tokens(query));
        let mut matched: HashMap<usize, Vec<&String>> = HashMap::new();
        for token in &wanted {
            for &position in self.postings.get(token).into_iter().flatten() {
                matched.entry(position).or_default().push(token);
            }
        }
        let mut hits: Vec<_> = matched.into_iter().collect();
        // More words first, then the order of the tools: a total order, so no hash map shows.
        hits.sort_by(|(a, a_tokens), (b, b_tokens)| {
            b_tokens.len().cmp(&a_tokens.len()).then(a.cmp(b))
        });
        hits.truncate(k);
        hits.into_iter()
            .map(|(position, tokens)| {
                let score = score(&wanted, tokens.into_iter());
                PickResult {
                    tool: Arc::clone(&self.tools[position]),
                    score: score.value,
                    reason: score.reason,
                    provenance: PickProvenance {
                        scorer: KeywordScorer::NAME.to_owned(),
                        details: score.details,
                    },
                }
            })
            .collect()
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "numbers of words in a query, far below 2^52"
)]
fn score<'t>(wanted: &[String], matched: impl Iterator<Item = &'t String>) -> Score {
    let matched: Vec<&str> = matched.map(String::as_str).collect();
    if matched.is_empty() {
        return Score::default();
    }
    Score {
        value: matched.len() as f64 / wanted.len() as f64,
        reason: Some(format!("matched: {}", matched.join(", "))),
        ..Score::default()
    }
}

fn text_of(tool: &ToolDefinition) -> String {
    let tags = tool.annotations().tags.iter().map(String::as_str);
    let parts: Vec<_> = std::iter::once(tool.name().as_str())
        .chain(tool.description())
        .chain(tags)
        .collect();
    parts.join(" ")
}

fn distinct(tokens: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    tokens.filter(|token| seen.insert(token.clone())).collect()
}

fn tokens(text: &str) -> impl Iterator<Item = String> {
    let words = with_borders(text).to_lowercase();
    words
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().nth(1).is_some() && !STOP_WORDS.contains(word))
        .map(|word| singular(word).to_owned())
        .collect::<Vec<_>>()
        .into_iter()
}

/// Puts a blank at the borders of camelCase and of acronyms.
fn with_borders(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len() + text.len() / 4);
    let mut characters = text.chars().peekable();
    let mut previous: Option<char> = None;
    while let Some(character) = characters.next() {
        if character.is_uppercase()
            && let Some(previous) = previous
        {
            let begins_word = previous.is_lowercase() || previous.is_numeric();
            let ends_acronym =
                previous.is_uppercase() && characters.peek().is_some_and(|c| c.is_lowercase());
            if begins_word || ends_acronym {
                spaced.push(' ');
            }
        }
        spaced.push(character);
        previous = Some(character);
    }
    spaced
}

fn singular(word: &str) -> &str {
    let keeps_its_s = word.chars().nth(3).is_none()
        || ["ss", "us", "is"]
            .iter()
            .any(|ending| word.ends_with(ending));
    match word.strip_suffix('s') {
        Some(stem) if !keeps_its_s => stem,
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        tokens(text).collect()
    }

    #[test]
    fn there_are_32_stop_words() {
        assert_eq!(STOP_WORDS.iter().collect::<HashSet<_>>().len(), 32);
    }

    #[test]
    fn camel_case_and_acronyms_are_broken_up() {
        assert_eq!(words("listFiles"), ["list", "file"]);
        assert_eq!(words("HTTPFetch"), ["http", "fetch"]);
        assert_eq!(words("parseJSONBody"), ["parse", "json", "body"]);
        assert_eq!(words("s3Bucket"), ["s3", "bucket"]);
    }

    #[test]
    fn everything_that_is_no_letter_or_digit_separates() {
        assert_eq!(
            words("get_current-weather.now/x"),
            ["get", "current", "weather", "now"]
        );
        assert_eq!(words("Größe 東京"), ["größe", "東京"]);
    }

    #[test]
    fn only_a_plural_loses_its_s() {
        assert_eq!(
            words("files class status paris gas buses"),
            ["file", "class", "status", "paris", "gas", "buse"]
        );
    }
}

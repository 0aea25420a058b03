//! Finding tools by what somebody says.

use std::collections::HashSet;
use std::sync::Arc;

use super::tool::ListedTool;

/// Ranks tools for a query.
///
/// The facade's `search_tools` asks it. Whatever it ranks by, a tool whose name is in the query must come
/// first.
pub trait Search: Send + Sync + 'static {
    /// The places of the tools that fit, the best first, at most `limit` of them.
    fn search(&self, query: &str, tools: &[Arc<ListedTool>], limit: usize) -> Vec<usize>;
}

/// Names first (the same, at the start, anywhere), then words in common. Ties keep the order of the list.
///
/// ```
/// use std::sync::Arc;
/// use haft_mcp::gateway::{ListedTool, PlainSearch, Search as _};
///
/// let tool = |name, text| Arc::new(ListedTool::new(name, serde_json::Map::new()).described(text));
/// let tools = [tool("mail__send", "Sends a letter."), tool("git__log", "Shows the history.")];
/// assert_eq!(PlainSearch.search("call GIT LOG please", &tools, 8), [1]);
/// assert_eq!(PlainSearch.search("history", &tools, 8), [1]);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainSearch;

/// No query needs to be longer, and no comparison longer than that.
const MAX_WORDS: usize = 64;

/// The more, the better: how the name fits, then how many words do.
type Rank = (Fit, usize);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// Only words in common.
    Words,
    /// The query is somewhere in the name.
    Inside,
    /// The name starts with the query.
    Start,
    /// The name by which its server knows it is in the query; the longer it is, the surer.
    RawNamed(usize),
    /// The name is in the query; the longer it is, the surer.
    Named(usize),
    /// The query is the name by which its server knows it.
    RawName,
    /// The query is the name.
    Name,
}

impl Search for PlainSearch {
    fn search(&self, query: &str, tools: &[Arc<ListedTool>], limit: usize) -> Vec<usize> {
        let query = Query::of(query);
        if query.words.is_empty() {
            return Vec::new();
        }
        let ranked = tools.iter().enumerate();
        let mut ranked: Vec<(Rank, usize)> = ranked
            .filter_map(|(at, tool)| Some((query.rank(tool)?, at)))
            .collect();
        ranked.sort_by(|(one, at), (other, other_at)| other.cmp(one).then(at.cmp(other_at)));
        ranked.truncate(limit);
        ranked.into_iter().map(|(_, at)| at).collect()
    }
}

struct Query {
    words: Vec<String>,
    /// All words as one.
    squeezed: String,
    /// Every run of words as one: `create issue`, `create_issue` and `createIssue` are the same name.
    runs: HashSet<String>,
}

impl Query {
    fn of(query: &str) -> Self {
        let words: Vec<String> = words(query).take(MAX_WORDS).collect();
        let mut runs = HashSet::new();
        for start in 0..words.len() {
            let mut run = String::new();
            for word in &words[start..] {
                run.push_str(word);
                runs.insert(run.clone());
            }
        }
        Self {
            squeezed: words.concat(),
            words,
            runs,
        }
    }

    fn rank(&self, tool: &ListedTool) -> Option<Rank> {
        let name = squeezed(&tool.name);
        let raw = tool.raw_name.as_deref().map(squeezed);
        let in_common = self.words_in_common(tool);
        let fit = self.fit(&name, raw.as_deref());
        match fit {
            Some(fit) => Some((fit, in_common)),
            None => (in_common > 0).then_some((Fit::Words, in_common)),
        }
    }

    fn fit(&self, name: &str, raw: Option<&str>) -> Option<Fit> {
        let whole = self.squeezed.as_str();
        // A name of nothing but signs squeezes to nothing, which would be in every query.
        let raw = raw.filter(|raw| !raw.is_empty());
        if name == whole {
            return Some(Fit::Name);
        }
        if raw == Some(whole) {
            return Some(Fit::RawName);
        }
        if self.runs.contains(name) {
            return Some(Fit::Named(name.len()));
        }
        if let Some(raw) = raw.filter(|raw| self.runs.contains(*raw)) {
            return Some(Fit::RawNamed(raw.len()));
        }
        let starts = |it: &str| it.starts_with(whole);
        if starts(name) || raw.is_some_and(starts) {
            return Some(Fit::Start);
        }
        name.contains(whole).then_some(Fit::Inside)
    }

    /// How much the words say: one in the name counts three, one in the description one.
    fn words_in_common(&self, tool: &ListedTool) -> usize {
        let names = [
            Some(&tool.name),
            tool.raw_name.as_ref(),
            tool.title.as_ref(),
        ];
        let names: HashSet<String> = names
            .into_iter()
            .flatten()
            .flat_map(|it| words(it))
            .collect();
        let texts: HashSet<String> = tool.description.iter().flat_map(|it| words(it)).collect();
        let of_query: HashSet<&String> = self.words.iter().collect();
        of_query
            .into_iter()
            .map(|word| {
                if holds(&names, word) {
                    3
                } else {
                    usize::from(holds(&texts, word))
                }
            })
            .sum()
    }
}

/// Whether a word is there, be it in the plural. Words of one or two letters say nothing.
fn holds(words: &HashSet<String>, word: &str) -> bool {
    let singular = word.strip_suffix('s').unwrap_or(word);
    word.len() > 2
        && (words.contains(word)
            || words.contains(singular)
            || words.contains(&format!("{singular}s")))
}

/// Words in lower case, split at everything that is no letter and no digit, and inside `camelCase`.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|part| !part.is_empty())
        .flat_map(split_camel)
}

fn split_camel(part: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in part.chars() {
        if c.is_uppercase() && after_lower {
            words.push(String::new());
        }
        after_lower = c.is_lowercase();
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words
}

fn squeezed(name: &str) -> String {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, text: &str) -> Arc<ListedTool> {
        let (server, raw) = name.split_once("__").unwrap();
        let tool = ListedTool::new(name, serde_json::Map::new());
        Arc::new(tool.described(text).of_server(server, raw))
    }

    fn tools() -> Vec<Arc<ListedTool>> {
        vec![
            tool("git__log", "Shows the commit history."),
            tool(
                "github__create_issue",
                "Create a new issue in a repository.",
            ),
            tool("github__list_issues", "List issues in a repository."),
            tool(
                "notes__createIssue",
                "Create a note about issues and commits.",
            ),
            tool(
                "web__fetch",
                "Fetches a page and create a summary of the issue.",
            ),
        ]
    }

    #[test]
    fn a_name_in_any_spelling_comes_first() {
        let tools = tools();
        for (at, tool) in tools.iter().enumerate() {
            let name = &tool.name;
            let spellings = [
                name.clone(),
                name.to_uppercase(),
                name.replace('_', "-"),
                name.replace("__", " ").replace('_', " "),
                format!("please use {name} now"),
                format!("what does `{}` do?", name.replace('_', "-")),
            ];
            for spelling in spellings {
                assert_eq!(
                    PlainSearch.search(&spelling, &tools, 8)[0],
                    at,
                    "{spelling}"
                );
            }
        }
        for raw in [
            "list_issues",
            "LIST-ISSUES",
            "call list issues for me",
            "listIssues",
        ] {
            assert_eq!(PlainSearch.search(raw, &tools, 8)[0], 2, "{raw}");
        }
    }

    #[test]
    fn both_servers_tools_of_one_raw_name_come_before_the_rest() {
        let found = PlainSearch.search("create_issue", &tools(), 8);
        assert_eq!(found[..2], [1, 3]);
    }

    #[test]
    fn a_longer_name_beats_a_shorter_one_inside_it() {
        let tools = [tool("a__log", ""), tool("a__git_log", "")];
        assert_eq!(PlainSearch.search("show a git log", &tools, 8)[0], 1);
    }

    #[test]
    fn words_find_what_no_name_says_and_nothing_finds_nothing() {
        let tools = tools();
        assert_eq!(PlainSearch.search("commit history", &tools, 8)[0], 0);
        assert!(PlainSearch.search("weather in Paris", &tools, 8).is_empty());
        for empty in ["", "  ", "__", "☃"] {
            assert!(PlainSearch.search(empty, &tools, 8).is_empty(), "{empty}");
        }
    }

    #[test]
    fn the_limit_holds_and_ties_keep_the_order() {
        let tools: Vec<_> = (0..40)
            .map(|n| tool(&format!("s__t{n}"), "the same words"))
            .collect();
        assert_eq!(PlainSearch.search("same", &tools, 3), [0, 1, 2]);
    }
}

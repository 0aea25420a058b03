//! Finding tools by what somebody says.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_catalog::search::{Detail, MAX_QUERY_CHARS, SearchIndex, SearchRequest, Searchable};
use haft_core::brief_of;
use serde_json::{Map, Value, json};

use super::tool::ListedTool;

/// Ranks tools for a query.
///
/// The facade's `search_tools` asks it. Whatever it ranks by, a tool whose name is in the query must come
/// first.
pub trait Search: Send + Sync + 'static {
    /// The places of the tools that fit, the best first, at most `limit` of them.
    fn search(&self, query: &str, tools: &[Arc<ListedTool>], limit: usize) -> Vec<usize>;
}

/// haft's own search: names first, then the stems of words and runs of characters
/// ([`haft_catalog::search`]).
///
/// It keeps the indexes of the lists that it saw last. A list that has changed is read only where it is
/// new, and whoever searches meanwhile is not held up.
///
/// ```
/// use std::sync::Arc;
/// use haft_mcp::gateway::{LexicalSearch, ListedTool, Search as _};
///
/// let tool = |name, text| Arc::new(ListedTool::new(name, serde_json::Map::new()).described(text));
/// let tools = [tool("mail__send", "Sends a letter."), tool("git__log", "Shows the history.")];
/// let search = LexicalSearch::default();
/// assert_eq!(search.search("call GIT LOG please", &tools, 8), [1]);
/// assert_eq!(search.search("history", &tools, 8), [1]);
/// ```
#[derive(Debug, Default)]
pub struct LexicalSearch {
    /// The one that was used last comes first.
    indexes: Mutex<Vec<SearchIndex>>,
}

/// How many lists are remembered: callers may see different tools, and a search may be for one server.
const LISTS: usize = 8;

impl Search for LexicalSearch {
    fn search(&self, query: &str, tools: &[Arc<ListedTool>], limit: usize) -> Vec<usize> {
        let query: String = query.chars().take(MAX_QUERY_CHARS).collect();
        let request = SearchRequest::new(query).k(limit).detail(Detail::Names);
        let hits = match self.index(tools).search(&request) {
            Ok(answer) => answer.hits,
            Err(error) => {
                tracing::warn!(%error, "a search could not be made");
                Vec::new()
            }
        };
        hits.into_iter()
            .take(limit)
            .map(|hit| hit.position)
            .collect()
    }
}

impl LexicalSearch {
    fn index(&self, tools: &[Arc<ListedTool>]) -> SearchIndex {
        let tools: Vec<_> = tools.iter().map(|tool| Arc::clone(tool) as _).collect();
        let known = self.indexes().iter().position(|index| index.is_of(&tools));
        let last = match known {
            Some(at) => self.take(at, &tools),
            None => self.indexes().first().cloned(),
        };
        // Made without the lock: it may take a while, and others search meanwhile.
        let index = match last {
            Some(index) if index.is_of(&tools) => index,
            Some(index) => index.following(tools),
            None => SearchIndex::default().following(tools),
        };
        let mut indexes = self.indexes();
        indexes.insert(0, index.clone());
        indexes.truncate(LISTS);
        index
    }

    /// Takes an index out, to be put in front; somebody else may have moved it meanwhile.
    fn take(&self, at: usize, tools: &[Arc<dyn Searchable>]) -> Option<SearchIndex> {
        let mut indexes = self.indexes();
        match indexes.get(at) {
            Some(index) if index.is_of(tools) => Some(indexes.remove(at)),
            _ => indexes.first().cloned(),
        }
    }

    fn indexes(&self) -> MutexGuard<'_, Vec<SearchIndex>> {
        // Whole whenever it can be seen, also after a panic elsewhere.
        self.indexes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Searchable for ListedTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn raw_name(&self) -> Option<&str> {
        self.raw_name.as_deref()
    }

    fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    fn brief(&self) -> String {
        let text = self.description.as_deref().or(self.title.as_deref());
        brief_of(text.unwrap_or_default())
    }

    fn parameters(&self) -> Option<&Map<String, Value>> {
        Some(&self.input_schema)
    }

    fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    fn definition(&self) -> Value {
        let mut definition = json!({"name": self.name, "description": self.description});
        definition["inputSchema"] = Value::Object((*self.input_schema).clone());
        if let Some(schema) = &self.output_schema {
            definition["outputSchema"] = Value::Object((**schema).clone());
        }
        definition
    }
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
                    LexicalSearch::default().search(&spelling, &tools, 8)[0],
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
            assert_eq!(
                LexicalSearch::default().search(raw, &tools, 8)[0],
                2,
                "{raw}"
            );
        }
    }

    #[test]
    fn both_servers_tools_of_one_raw_name_come_before_the_rest() {
        let found = LexicalSearch::default().search("create_issue", &tools(), 8);
        assert_eq!(found[..2], [1, 3]);
    }

    #[test]
    fn a_longer_name_beats_a_shorter_one_inside_it() {
        let tools = [tool("a__log", ""), tool("a__git_log", "")];
        assert_eq!(
            LexicalSearch::default().search("show a git log", &tools, 8)[0],
            1
        );
    }

    #[test]
    fn words_find_what_no_name_says_and_nothing_finds_nothing() {
        let tools = tools();
        assert_eq!(
            LexicalSearch::default().search("commit history", &tools, 8)[0],
            0
        );
        assert!(
            LexicalSearch::default()
                .search("weather in Paris", &tools, 8)
                .is_empty()
        );
        for empty in ["", "  ", "__", "☃"] {
            assert!(
                LexicalSearch::default().search(empty, &tools, 8).is_empty(),
                "{empty}"
            );
        }
    }

    #[test]
    fn the_limit_holds_and_ties_keep_the_order() {
        let tools: Vec<_> = (0..10)
            .map(|n| tool(&format!("s__t{n}"), "the same words"))
            .collect();
        assert_eq!(
            LexicalSearch::default().search("same", &tools, 3),
            [0, 1, 2]
        );
    }
}

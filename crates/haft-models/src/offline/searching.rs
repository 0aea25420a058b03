//! Searching for tools that are held back.

use haft_core::ToolDefinition;
use serde_json::Map;

use super::plan::Call;

/// What the tool that searches is called: first where somebody else has a tool of the usual name.
const NAMES: [&str; 2] = ["haft__search_tools", "search_tools"];
/// A query has at most so many bytes.
const MAX_QUERY: usize = 400;

/// Whether this is the name of the tool that searches, among those that are offered.
pub(super) fn is_search<'t>(name: &str, offered: impl IntoIterator<Item = &'t str>) -> bool {
    let offered: Vec<_> = offered.into_iter().collect();
    let mut names = NAMES.iter();
    names.find(|it| offered.contains(it)) == Some(&name)
}

/// A search in the words of the message.
pub(super) fn search(tool: &ToolDefinition, text: &str) -> Call {
    let text = text.trim();
    let query = &text[..text.floor_char_boundary(MAX_QUERY)];
    let mut arguments = Map::new();
    arguments.insert("query".to_owned(), query.into());
    Call {
        name: tool.name().to_string(),
        arguments,
    }
}

//! What providers refuse about tools that they hold back.

use serde_json::Value;

use super::{list_at, text_at};

/// Whether a tool is held back.
fn is_deferred(tool: &Value) -> bool {
    tool.get("defer_loading") == Some(&Value::Bool(true))
}

/// `OpenAI` wants its search beside such tools, once.
pub(super) fn check_responses(body: &Value) -> Result<(), String> {
    let tools = list_at(body, "tools");
    let searches = tools
        .iter()
        .filter(|tool| text_at(tool, "type") == Some("tool_search"));
    match searches.count() {
        0 if tools.iter().any(is_deferred) => {
            Err("tools with `defer_loading` need a tool of type `tool_search`".to_owned())
        }
        0 | 1 => Ok(()),
        _ => Err("there is more than one `tool_search`".to_owned()),
    }
}

/// Anthropic wants one tool at least that is not held back, no cache mark on those that are, and a
/// definition for each reference.
pub(super) fn check_messages(body: &Value) -> Result<(), String> {
    let tools = list_at(body, "tools");
    let deferred: Vec<_> = tools.iter().filter(|tool| is_deferred(tool)).collect();
    if !tools.is_empty() && deferred.len() == tools.len() {
        return Err("all tools have `defer_loading`: one at least must not".to_owned());
    }
    if deferred
        .iter()
        .any(|tool| tool.get("cache_control").is_some())
    {
        return Err("a tool has both `defer_loading` and `cache_control`".to_owned());
    }
    let known: Vec<_> = deferred
        .iter()
        .filter_map(|tool| text_at(tool, "name"))
        .collect();
    for block in list_at(body, "messages")
        .iter()
        .flat_map(|it| list_at(it, "content"))
    {
        let references = match text_at(block, "type") {
            Some("tool_result") => {
                let content = list_at(block, "content");
                let is_reference = |it: &&Value| text_at(it, "type") == Some("tool_reference");
                let references: Vec<_> = content.iter().filter(is_reference).collect();
                if !references.is_empty() && references.len() < content.len() {
                    return Err("a `tool_reference` stands beside something else".to_owned());
                }
                references
            }
            Some("tool_search_tool_result") => match block.get("content") {
                Some(found) => list_at(found, "tool_references").iter().collect(),
                None => return Err("a search has no `content`".to_owned()),
            },
            _ => continue,
        };
        let mut names = references
            .into_iter()
            .map(|it| text_at(it, "tool_name").unwrap_or(""));
        if let Some(name) = names.find(|name| !known.contains(name)) {
            return Err(format!("the tool reference `{name}` has no definition"));
        }
    }
    Ok(())
}

//! References to tools that the list holds back.
//!
//! What comes in: outputs that note which tools they refer to, and what the provider's own search found
//! in earlier turns. What goes out: blocks by which the provider shows those tools, in the place where
//! they were found, so that nothing before it changes. The provider refuses a reference to a tool that
//! the list does not have, which is why each request is looked at anew: what it cannot refer to is said
//! in words.

use std::collections::HashSet;

use haft_core::{CallOutput, FunctionCallOutput, Item, Loading};
use serde_json::{Map, Value, json};

use super::super::tools::RenderedTools;
use super::blocks::{Block, legal_id, text_block};
use crate::wire::anthropic::BLOCK_MARK;

/// How the provider's own search begins its name.
const SEARCH: &str = "tool_search_tool";

/// The provider's own search, by words.
pub(super) const SEARCH_TOOL: &str =
    r#"{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}"#;

/// What one request can refer to, and what it has referred to so far.
pub(super) struct References<'t> {
    tools: &'t RenderedTools,
    known: HashSet<&'t str>,
}

/// An output that refers to tools.
pub(super) struct Referring {
    /// The result, of nothing but references: the provider takes nothing else beside them.
    pub(super) result: Block,
    /// What the output says, for a place behind all results.
    pub(super) words: Option<Block>,
}

impl<'t> References<'t> {
    /// Of a request with these tools, at the beginning of its conversation.
    pub(super) fn of(tools: &'t RenderedTools) -> Self {
        Self {
            tools,
            known: HashSet::new(),
        }
    }

    /// An output by which the model gets to know tools; none if it gets to know none.
    pub(super) fn output(&mut self, output: &FunctionCallOutput) -> Option<Referring> {
        if output.is_error {
            return None;
        }
        let mut names: Vec<_> = output
            .tool_references()
            .filter_map(|name| self.held(name, Loading::Referenced))
            .collect();
        names.retain(|name| self.known.insert(name));
        if names.is_empty() {
            return None;
        }
        let id = legal_id(&output.call_id);
        let content: Vec<_> = names.into_iter().map(reference).collect();
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": content});
        let words = match &output.output {
            CallOutput::Text(text) => text.clone(),
            parts @ CallOutput::Parts(_) => parts.to_text(),
        };
        let words = (!words.is_empty()).then(|| {
            text_block(&format!(
                "<tool_output tool_use_id=\"{id}\">\n{words}\n</tool_output>"
            ))
        });
        Some(Referring {
            result: Block::of(&result),
            words,
        })
    }

    /// Whether an item is a block of the provider's own search.
    pub(super) fn is_search(item: &Item) -> bool {
        let Some(block) = search_block(item) else {
            return false;
        };
        let member = match block.get("type").and_then(Value::as_str) {
            Some("server_tool_use") => "name",
            _ => "type",
        };
        let said = block.get(member).and_then(Value::as_str);
        said.is_some_and(|said| said.starts_with(SEARCH))
    }

    /// A block of the provider's own search as it came, but for tools that are not there any more; none
    /// where this request has no such search.
    pub(super) fn search(&self, item: &Item) -> Option<Block> {
        let mut tools = self.tools.tools().iter();
        if !tools.any(|tool| tool.loading() == Loading::Searched) {
            return None;
        }
        let mut block = search_block(item)?.clone();
        let found = block.get_mut("content").and_then(Value::as_object_mut);
        let found = found.and_then(|content| content.get_mut("tool_references"));
        if let Some(found) = found.and_then(Value::as_array_mut) {
            found.retain(|found| {
                let name = found.get("tool_name").and_then(Value::as_str);
                name.is_some_and(|name| self.held(name, Loading::Searched).is_some())
            });
        }
        Some(Block::of(&Value::Object(block)))
    }

    /// The name of a tool, if the list holds it back in this way.
    fn held(&self, name: &str, loading: Loading) -> Option<&'t str> {
        let tool = self.tools.tool(name)?;
        (tool.loading() == loading).then(|| tool.name())
    }
}

fn reference(name: &str) -> Value {
    json!({"type": "tool_reference", "tool_name": name})
}

fn search_block(item: &Item) -> Option<&Map<String, Value>> {
    match item {
        Item::Other(members) if item.kind().starts_with(BLOCK_MARK) => {
            members.get("block")?.as_object()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tools::render_tools;
    use super::*;
    use haft_core::{ToolDefinition, ToolSpec, ToolSpecs};
    use std::sync::Arc;

    fn tools(tools: &[(&str, Loading)]) -> Arc<RenderedTools> {
        let specs = tools.iter().map(|(name, loading)| {
            let tool = ToolDefinition::builder(*name).parameters(json!({"type": "object"}));
            ToolSpec::loaded_by(tool.build().unwrap(), *loading)
        });
        render_tools(&ToolSpecs::new(specs.collect()), &super::super::FORM)
    }

    fn output(names: &[&str]) -> FunctionCallOutput {
        FunctionCallOutput::new("a.b", "found").referring_to(names.iter().copied())
    }

    #[test]
    fn an_output_refers_once_and_only_to_what_is_held_back() {
        let tools = tools(&[
            ("held", Loading::Referenced),
            ("other", Loading::Referenced),
            ("listed", Loading::Listed),
        ]);
        let mut references = References::of(&tools);
        assert!(references.output(&output(&["listed", "gone"])).is_none());
        assert!(references.output(&output(&["held"]).as_error()).is_none());
        let found = references
            .output(&output(&["listed", "held", "gone", "held"]))
            .unwrap();
        assert_eq!(
            &*found.result.json,
            r#"{"type":"tool_result","tool_use_id":"a_2eb","content":[{"type":"tool_reference","tool_name":"held"}]}"#
        );
        assert_eq!(
            &*found.words.unwrap().json,
            r#"{"type":"text","text":"<tool_output tool_use_id=\"a_2eb\">\nfound\n</tool_output>"}"#
        );
        assert!(references.output(&output(&["held"])).is_none());
        let silent = FunctionCallOutput::new("c", "").referring_to(["other"]);
        assert!(references.output(&silent).unwrap().words.is_none());
    }

    fn block(json: &Value) -> Item {
        serde_json::from_value(json!({"type": "anthropic:block", "block": json})).unwrap()
    }

    #[test]
    fn a_search_of_the_provider_loses_what_is_not_there_any_more() {
        let asked = block(
            &json!({"type": "server_tool_use", "id": "s", "name": "tool_search_tool_regex",
            "input": {"query": "x"}}),
        );
        let found = block(
            &json!({"type": "tool_search_tool_result", "tool_use_id": "s", "content": {
            "type": "tool_search_tool_search_result", "tool_references": [
                {"type": "tool_reference", "tool_name": "gone"},
                {"type": "tool_reference", "tool_name": "held"}]}}),
        );
        assert!(References::is_search(&asked) && References::is_search(&found));
        let other = block(&json!({"type": "server_tool_use", "id": "s", "name": "web_search"}));
        assert!(!References::is_search(&other) && !References::is_search(&Item::user("hi")));
        let tools = tools(&[("held", Loading::Searched)]);
        let references = References::of(&tools);
        assert_eq!(
            &*references.search(&asked).unwrap().json,
            r#"{"type":"server_tool_use","id":"s","name":"tool_search_tool_regex","input":{"query":"x"}}"#
        );
        assert_eq!(
            &*references.search(&found).unwrap().json,
            r#"{"type":"tool_search_tool_result","tool_use_id":"s","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"held"}]}}"#
        );
        let none = RenderedTools::default();
        assert!(References::of(&none).search(&found).is_none());
    }
}

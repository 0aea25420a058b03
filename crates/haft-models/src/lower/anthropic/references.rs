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

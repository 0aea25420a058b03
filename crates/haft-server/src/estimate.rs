//! How many tokens a text has, roughly: no tokenizer is at hand, and every model has its own.

use haft_core::{Conversation, ToolSpecs};

/// Bytes per token of usual text.
const BYTES_PER_TOKEN: u64 = 4;

/// What an item costs besides its text.
const PER_ITEM: u64 = 4;

/// The tokens of a text.
pub(crate) fn tokens_of(text: &str) -> u64 {
    (text.len() as u64).div_ceil(BYTES_PER_TOKEN)
}

/// The tokens of a conversation.
pub(crate) fn tokens_of_conversation(conversation: &Conversation) -> u64 {
    let items = conversation.items();
    items
        .map(|item| {
            let text = serde_json::to_string(item).unwrap_or_default();
            PER_ITEM + tokens_of(&text)
        })
        .sum()
}

/// The tokens of the tools that go along.
pub(crate) fn tokens_of_tools(tools: &ToolSpecs) -> u64 {
    let definitions = tools
        .iter()
        .map(|tool| tool.definition().to_json().to_string());
    definitions.map(|text| tokens_of(&text)).sum()
}

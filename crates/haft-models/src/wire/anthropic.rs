//! What the Messages API sends, as far as it is read here.

use haft_core::{FinishReason, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// One streamed event of any type.
#[derive(Deserialize)]
pub(crate) struct Event<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) index: Option<Value>,
    #[serde(borrow)]
    pub(crate) message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) delta: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "super::usage")]
    pub(crate) usage: Option<WireUsage>,
    pub(crate) error: Option<Value>,
}

/// The message: its beginning in a stream, or a whole answer.
#[derive(Deserialize)]
pub(crate) struct Message<'a> {
    pub(crate) id: Option<String>,
    pub(crate) model: Option<String>,
    #[serde(borrow)]
    pub(crate) content: Option<Vec<&'a RawValue>>,
    pub(crate) stop_reason: Option<String>,
    #[serde(default, deserialize_with = "super::usage")]
    pub(crate) usage: Option<WireUsage>,
}

/// What a `content_block_delta` or a `message_delta` adds.
#[derive(Deserialize)]
pub(crate) struct Delta<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    #[serde(borrow)]
    pub(crate) text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) thinking: Option<&'a RawValue>,
    pub(crate) signature: Option<String>,
    #[serde(borrow)]
    pub(crate) partial_json: Option<&'a RawValue>,
    pub(crate) stop_reason: Option<String>,
}

/// The members of a block that are read here; which of them it has depends on its type.
#[derive(Deserialize)]
pub(crate) struct Block<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) text: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    #[serde(borrow)]
    pub(crate) input: Option<&'a RawValue>,
    pub(crate) thinking: Option<String>,
    pub(crate) signature: Option<String>,
    pub(crate) data: Option<String>,
}

/// Tokens as this API counts them: what was cached is not part of `input_tokens`.
#[derive(Deserialize, Default, Clone, Copy)]
pub(crate) struct WireUsage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize, Clone, Copy)]
struct OutputDetails {
    thinking_tokens: Option<u64>,
}

impl WireUsage {
    /// Counts only grow: what is not said again stays, and servers that say zero at first say the
    /// truth at the end.
    pub(crate) fn update(&mut self, later: Self) {
        self.input_tokens = self.input_tokens.max(later.input_tokens);
        self.cache_creation_input_tokens = self
            .cache_creation_input_tokens
            .max(later.cache_creation_input_tokens);
        self.cache_read_input_tokens = self
            .cache_read_input_tokens
            .max(later.cache_read_input_tokens);
        self.output_tokens = self.output_tokens.max(later.output_tokens);
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details);
    }
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        let [fresh, written, read] = [
            wire.input_tokens,
            wire.cache_creation_input_tokens,
            wire.cache_read_input_tokens,
        ]
        .map(|tokens| tokens.unwrap_or(0));
        Self {
            input_tokens: fresh.saturating_add(written).saturating_add(read),
            cache_write_tokens: written,
            cached_input_tokens: read,
            output_tokens: wire.output_tokens.unwrap_or(0),
            reasoning_tokens: wire
                .output_tokens_details
                .and_then(|details| details.thinking_tokens)
                .unwrap_or(0),
            requests: 1,
        }
    }
}

/// Why the model stopped, in haft's words.
pub(crate) fn finish_of(stop_reason: Option<&str>) -> FinishReason {
    match stop_reason {
        Some("end_turn" | "stop_sequence" | "tool_use" | "pause_turn") => FinishReason::Normal,
        Some("max_tokens" | "model_context_window_exceeded") => FinishReason::Length,
        Some("refusal") => FinishReason::ContentFilter,
        _ => FinishReason::Unknown,
    }
}

/// Before the signature of a thinking block, in `encrypted_content`.
pub(crate) const SIGNATURE_MARK: &str = "anthropic:";

/// Before the data of a redacted thinking block, in `encrypted_content`.
pub(crate) const REDACTED_MARK: &str = "anthropic-redacted:";

/// Before the type of a content block that haft does not know, as an item's type.
pub(crate) const BLOCK_MARK: &str = "anthropic:";

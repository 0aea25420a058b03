//! An answer of a model in the words of Chat Completions: whole, or in chunks.

mod call_ids;
mod chunks;
mod whole;

#[cfg(test)]
mod tests;

use bytes::Bytes;
use haft_core::{FinishReason, Usage};
use serde::Serialize;

use crate::app::now;
use crate::error::{ApiError, ErrorBody};
use crate::wire::new_id;

pub(crate) use chunks::ChunkWriter;
pub(crate) use whole::Completion;

/// What every object of one answer begins with.
#[derive(Debug, Clone)]
pub(crate) struct Heading {
    pub(crate) id: String,
    pub(crate) created: i64,
    /// The model as requests call it.
    pub(crate) model: String,
}

impl Heading {
    /// A new answer of this model.
    pub(crate) fn new(model: &str) -> Self {
        Self {
            id: new_id("chatcmpl"),
            created: now(),
            model: model.to_owned(),
        }
    }
}

/// What an answer cost.
#[derive(Debug, Serialize)]
struct UsageBody {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
}

#[derive(Debug, Serialize)]
struct PromptDetails {
    cached_tokens: u64,
    cache_write_tokens: u64,
}

#[derive(Debug, Serialize)]
struct CompletionDetails {
    reasoning_tokens: u64,
}

impl From<Usage> for UsageBody {
    fn from(usage: Usage) -> Self {
        Self {
            prompt_tokens: usage.input_tokens,
            completion_tokens: usage.output_tokens,
            total_tokens: usage.total_tokens(),
            prompt_tokens_details: PromptDetails {
                cached_tokens: usage.cached_input_tokens,
                cache_write_tokens: usage.cache_write_tokens,
            },
            completion_tokens_details: CompletionDetails {
                reasoning_tokens: usage.reasoning_tokens,
            },
        }
    }
}

/// Why the model stopped, in this protocol's words.
fn finish_reason(finish: FinishReason, has_calls: bool) -> &'static str {
    match finish {
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        _ if has_calls => "tool_calls",
        _ => "stop",
    }
}

/// Put between what the protocol knows only one of: two messages, two thoughts.
const BETWEEN: &str = "\n\n";

/// An error in the middle of a stream.
pub(crate) fn error_frame(error: &ApiError) -> Bytes {
    #[derive(Serialize)]
    struct Told<'e> {
        error: ErrorBody<'e>,
    }
    frame(&Told {
        error: error.body(),
    })
}

/// A value as one server-sent event.
fn frame(value: &impl Serialize) -> Bytes {
    let mut frame = b"data: ".to_vec();
    if let Err(error) = serde_json::to_writer(&mut frame, value) {
        // Only maps with keys that are no text cannot be written, and there are none.
        tracing::error!(%error, "a chunk cannot be written");
    }
    frame.extend_from_slice(b"\n\n");
    frame.into()
}

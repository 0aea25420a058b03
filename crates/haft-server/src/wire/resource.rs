//! The response as clients see it (`open-responses.md` §4).

use haft_core::Usage;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::shown_items::ShownItems;

/// Everything about a response but its items. All fields are always written; the order is the
/// specification's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ResponseResource {
    pub(crate) id: String,
    pub(crate) object: String,
    pub(crate) created_at: i64,
    pub(crate) completed_at: Option<i64>,
    pub(crate) status: ResponseStatus,
    pub(crate) incomplete_details: Option<IncompleteDetails>,
    pub(crate) model: String,
    pub(crate) previous_response_id: Option<String>,
    pub(crate) instructions: Option<String>,
    /// The items, as the client may see them; empty in the store, which keeps them apart.
    pub(crate) output: ShownItems,
    pub(crate) error: Option<ResponseError>,
    pub(crate) tools: Vec<Value>,
    pub(crate) tool_choice: Value,
    pub(crate) truncation: String,
    pub(crate) parallel_tool_calls: bool,
    pub(crate) text: Value,
    pub(crate) top_p: Value,
    pub(crate) presence_penalty: Value,
    pub(crate) frequency_penalty: Value,
    pub(crate) top_logprobs: u32,
    pub(crate) temperature: Value,
    pub(crate) reasoning: Option<Value>,
    pub(crate) usage: Option<UsageBody>,
    pub(crate) max_output_tokens: Option<u64>,
    pub(crate) max_tool_calls: Option<u32>,
    pub(crate) store: bool,
    pub(crate) background: bool,
    pub(crate) service_tier: String,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) safety_identifier: Option<String>,
    pub(crate) prompt_cache_key: Option<String>,
    /// Only where one is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) conversation: Option<Value>,
}

/// How far a response has come. `requires_action` is written by one dialect only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResponseStatus {
    Queued,
    InProgress,
    Completed,
    RequiresAction,
    Incomplete,
    Failed,
    Cancelled,
}

/// Which limit was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IncompleteDetails {
    pub(crate) reason: String,
}

/// Why a response failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResponseError {
    pub(crate) code: String,
    pub(crate) message: String,
}

/// Usage as the API writes it, every count present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UsageBody {
    input_tokens: u64,
    input_tokens_details: InputDetails,
    output_tokens: u64,
    output_tokens_details: OutputDetails,
    total_tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct InputDetails {
    cached_tokens: u64,
    cache_write_tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct OutputDetails {
    reasoning_tokens: u64,
}

impl From<&Usage> for UsageBody {
    fn from(usage: &Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            input_tokens_details: InputDetails {
                cached_tokens: usage.cached_input_tokens,
                cache_write_tokens: usage.cache_write_tokens,
            },
            output_tokens: usage.output_tokens,
            output_tokens_details: OutputDetails {
                reasoning_tokens: usage.reasoning_tokens,
            },
            total_tokens: usage.total_tokens(),
        }
    }
}

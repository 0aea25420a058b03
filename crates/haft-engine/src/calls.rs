//! The calls of an answer, as hydration takes them.

use haft_core::{
    CallSource, FinishReason, FunctionCall, Item, ItemStatus, Model, ModelResponse, RawArguments,
    ToolCall,
};

/// How much of a provider's call object is kept in the record.
const MAX_CHUNK_BYTES: usize = 64 * 1024;

/// Where the calls of an answer come from.
pub(crate) fn source_of<M: Model + ?Sized>(model: &M, response: &ModelResponse) -> CallSource {
    CallSource {
        provider: model.provider().to_owned(),
        model: match &response.model {
            Some(answering) => answering.clone(),
            None => model.name().to_owned(),
        },
        response_id: response.response_id.clone(),
        ..CallSource::default()
    }
}

/// Why each item of an answer ends where it does: the limit can only have fallen into what the model
/// wrote last, or into what the provider marks.
pub(crate) fn finish_of(item: &FunctionCall, is_last: bool, finish: FinishReason) -> FinishReason {
    match item.status {
        Some(ItemStatus::Incomplete) => FinishReason::Length,
        _ if is_last => finish,
        _ => FinishReason::Normal,
    }
}

/// A call as hydration takes it.
pub(crate) fn as_tool_call(
    item: &FunctionCall,
    finish: FinishReason,
    source: &CallSource,
) -> ToolCall {
    let mut chunk = serde_json::to_string(item).unwrap_or_default();
    chunk.truncate(chunk.floor_char_boundary(MAX_CHUNK_BYTES));
    ToolCall {
        name: item.name.clone(),
        call_id: Some(item.call_id.clone()),
        arguments: RawArguments::Text(item.arguments.clone()),
        finish,
        source: Some(CallSource {
            chunk: Some(chunk),
            recovered: item.is_recovered(),
            ..source.clone()
        }),
    }
}

/// All calls of an answer, in order.
pub(crate) fn calls_of<M: Model + ?Sized>(model: &M, response: &ModelResponse) -> Vec<ToolCall> {
    let source = source_of(model, response);
    let last = response.items.len().saturating_sub(1);
    let items = response.items.iter().enumerate();
    items
        .filter_map(|(at, item)| match item {
            Item::FunctionCall(call) => {
                let finish = finish_of(call, at == last, response.finish);
                Some(as_tool_call(call, finish, &source))
            }
            _ => None,
        })
        .collect()
}

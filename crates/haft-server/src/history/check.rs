//! Calls and outputs of a context belong together (`open-responses.md` §6.2, §9.1).

use haft_core::{Conversation, HistoryError, Item, ProviderCall};
use serde_json::Value;

use super::Record;
use crate::error::{ApiError, ErrorCode};

/// Checks the expanded conversation; the records say where a mistake stands.
pub(crate) fn verify(conversation: &Conversation, records: &[Record]) -> Result<(), ApiError> {
    let Err(error) = conversation.verify() else {
        return Ok(());
    };
    let (code, call_id, is_output) = match &error {
        HistoryError::OrphanOutput { call_id } => (ErrorCode::ToolCallNotFound, call_id, true),
        HistoryError::MissingOutput { call_id } => (ErrorCode::MissingToolOutput, call_id, false),
        HistoryError::DuplicateOutput { call_id } => {
            (ErrorCode::DuplicateToolOutput, call_id, true)
        }
        HistoryError::DuplicateCall { call_id } => (ErrorCode::InvalidValue, call_id, false),
        _ => return Err(ApiError::new(ErrorCode::InvalidValue, error.to_string()).at("input")),
    };
    let of_call = |record: &&Record| {
        let item = call_of(&record.item);
        item.is_some_and(|(id, answers)| id == call_id && answers == is_output)
    };
    let message = match records.iter().rev().find(of_call) {
        Some(call) if code == ErrorCode::MissingToolOutput => {
            // The output of a search is called after the search, and not after the call.
            let answer = match call.item.kind() {
                "tool_search_call" => "tool_search_output".to_owned(),
                kind => format!("{kind}_output"),
            };
            format!("call `{call_id}` has no output: add a `{answer}` for it")
        }
        _ => error.to_string(),
    };
    let of_call = records.iter().rev().filter(of_call);
    let mut places = of_call.filter_map(|record| record.param.clone());
    let param = match places.next() {
        Some(place) => format!("{place}.call_id"),
        None => "input".to_owned(),
    };
    Err(ApiError::new(code, message).at(param))
}

/// The call that an item belongs to, and whether it is its output.
pub(crate) fn call_of(item: &Item) -> Option<(&str, bool)> {
    match item {
        Item::FunctionCall(call) => Some((&call.call_id, false)),
        Item::FunctionCallOutput(output) => Some((&output.call_id, true)),
        Item::Other(members) => {
            if let Some(ProviderCall::Output { call_id }) = item.provider_call() {
                return Some((call_id, true));
            }
            let id = members.get("call_id").and_then(Value::as_str)?;
            Some((id, item.kind().ends_with("_output")))
        }
        _ => None,
    }
}

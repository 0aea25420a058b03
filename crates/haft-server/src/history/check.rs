//! Calls and outputs of a context belong together (`open-responses.md` §6.2, §9.1).

use haft_core::{Conversation, HistoryError, Item};
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
    let mut places = records.iter().rev().filter_map(|record| {
        let (id, answers) = call_of(&record.item)?;
        (id == call_id && answers == is_output).then_some(record.param.clone())?
    });
    let param = match places.next() {
        Some(place) => format!("{place}.call_id"),
        None => "input".to_owned(),
    };
    Err(ApiError::new(code, error.to_string()).at(param))
}

/// The call that an item belongs to, and whether it is its output.
pub(crate) fn call_of(item: &Item) -> Option<(&str, bool)> {
    match item {
        Item::FunctionCall(call) => Some((&call.call_id, false)),
        Item::FunctionCallOutput(output) => Some((&output.call_id, true)),
        Item::Other(members) => {
            let id = members.get("call_id").and_then(Value::as_str)?;
            Some((id, item.kind().ends_with("_output")))
        }
        _ => None,
    }
}

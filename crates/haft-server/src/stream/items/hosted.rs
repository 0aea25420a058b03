//! Calls that run here, once the model is done with them.

use haft_core::CallOutput;
use haft_mcp::CallRecord;
use serde_json::{Value, json};

use super::call::{HostedCall, tell_arguments};
use super::{Place, write_item};
use crate::history::{CALL, TURN};
use crate::mcp::call_end;
use crate::stream::event::Writer;

/// What a hosted call came to.
pub(crate) struct HostedEnd<'e> {
    pub(crate) is_error: bool,
    pub(crate) error_kind: Option<&'e str>,
    pub(crate) output: &'e CallOutput,
    pub(crate) duration_ms: u64,
    pub(crate) is_repaired: bool,
    pub(crate) turn: u64,
    /// What the MCP server said to it, as far as it was asked.
    pub(crate) record: Option<CallRecord>,
}

/// Opens the item of a call that is known as a whole, and tells everything up to its result.
pub(in crate::stream) fn open_hosted(
    place: &Place,
    call_id: &str,
    call: &HostedCall,
    writer: &mut Writer,
) {
    let item = writer.heard(|| call.begun(&place.item_id, call_id));
    write_item("response.output_item.added", place, &item, writer);
    if call.mcp.is_some() {
        writer.write("response.mcp_call.in_progress", place);
        tell_arguments(&call.arguments, place, writer);
    }
}

/// Tells how a call of an MCP server ended, in front of its item.
pub(in crate::stream) fn tell_end(
    place: &Place,
    call: &HostedCall,
    is_error: bool,
    writer: &mut Writer,
) {
    if call.mcp.is_none() {
        return;
    }
    let kind = if is_error {
        "response.mcp_call.failed"
    } else {
        "response.mcp_call.completed"
    };
    writer.write(kind, place);
}

/// A hosted call as an item, with what came of it.
pub(crate) fn hosted_item(
    id: &str,
    call_id: &str,
    call: &HostedCall,
    end: &HostedEnd<'_>,
) -> Value {
    let mut json = call.begun(id, call_id);
    json["status"] = if end.is_error { "failed" } else { "completed" }.into();
    json["arguments"] = call.arguments.as_str().into();
    if call.mcp.is_some() {
        let told = call_end(end);
        json["output"] = told.output.into();
        json["error"] = told.error;
        if let Some(members) = json.as_object_mut() {
            members.extend(told.extra);
        }
        json[TURN] = end.turn.into();
        json[CALL] = call_id.into();
        return json;
    }
    json["provenance"] = json!({
        "turn": end.turn,
        "repaired": end.is_repaired,
        "duration_ms": end.duration_ms,
    });
    if end.is_error {
        json["error"] = json!({
            "type": end.error_kind.unwrap_or("failed"),
            "message": end.output.to_text(),
        });
    } else {
        json["output"] = json!(end.output);
    }
    json
}

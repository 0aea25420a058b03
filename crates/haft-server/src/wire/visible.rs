//! What of a stored item a client may see.
use super::request::Include;
use serde_json::Value;

pub(crate) fn visible_item(item: &Value, include: Include) -> Value {
    let mut item = item.clone();
    if let Some(members) = item.as_object_mut() {
        if members.get("type").and_then(Value::as_str) == Some("reasoning")
            && !include.encrypted_reasoning
        {
            members.shift_remove("encrypted_content");
        }
        members.shift_remove(crate::history::TURN);
        if let Some(Value::Array(parts)) = members.get_mut("content") {
            for part in parts {
                *part = visible_part(part, include);
            }
        }
    }
    item
}

pub(crate) fn visible_part(part: &Value, include: Include) -> Value {
    let mut part = part.clone();
    if !include.logprobs && part["type"] == "output_text" {
        part["logprobs"] = Value::Array(Vec::new());
    }
    part
}

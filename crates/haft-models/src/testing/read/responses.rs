//! Requests of the Responses API.

use haft_core::Item;
use serde_json::Value;

use super::deferred::check_responses;
use super::{list_at, openai_choice, text_at};
use crate::scripted::RequestView;

pub(super) fn view(body: &Value) -> Result<RequestView, String> {
    check_responses(body)?;
    let choice = body.get("tool_choice").filter(|it| !it.is_null());
    let mut view = RequestView {
        instructions: text_at(body, "instructions").map(str::to_owned),
        tools: tools(body),
        tool_choice: choice.map(openai_choice).transpose()?,
        parallel_tool_calls: body.get("parallel_tool_calls").and_then(Value::as_bool),
        ..RequestView::default()
    };
    match body.get("input") {
        Some(Value::String(text)) => view.add_item(&Item::user(text.as_str())),
        Some(Value::Array(items)) => {
            for (position, json) in items.iter().enumerate() {
                let item = serde_json::from_value(json.clone())
                    .map_err(|error| format!("`input[{position}]` is not an item: {error}"))?;
                view.add_item(&item);
                // The API itself has no such member, so its absence says nothing.
                if let (Item::FunctionCallOutput(_), None) = (&item, json.get("is_error"))
                    && let Some(output) = view.outputs.last_mut()
                {
                    output.is_error = None;
                }
            }
        }
        _ => return Err("the body has no `input`".to_owned()),
    }
    Ok(view)
}

/// Functions by name, other tools by type.
fn tools(body: &Value) -> Vec<String> {
    let tools = list_at(body, "tools").iter();
    tools
        .filter_map(|tool| text_at(tool, "name").or_else(|| text_at(tool, "type")))
        .map(str::to_owned)
        .collect()
}

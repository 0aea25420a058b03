//! How many items and tools a request may bring. The size of its body is bounded elsewhere; what each
//! of many small things costs is not.

use serde_json::Value;

use crate::access::Limits;
use crate::error::{ApiError, ErrorCode};

/// Checks a request for a response before it is read.
pub(super) fn check_request(body: &Value, limits: &Limits) -> Result<(), ApiError> {
    let items = body.get("input").and_then(Value::as_array);
    let items = items.map_or(&[][..], Vec::as_slice);
    check("input", items.len(), limits.max_input_items)?;
    let mut tools = tools_in(body);
    check("tools", tools, limits.max_tools)?;
    for (at, item) in items.iter().enumerate() {
        // Items can bring tools, too.
        tools += tools_in(item);
        check(&format!("input[{at}].tools"), tools, limits.max_tools)?;
    }
    Ok(())
}

/// The tools of a list of them, those in namespaces included.
fn tools_in(holder: &Value) -> usize {
    let tools = holder.get("tools").and_then(Value::as_array);
    let tools = tools.map_or(&[][..], Vec::as_slice);
    let nested = |tool: &Value| {
        tool.get("tools")
            .and_then(Value::as_array)
            .map_or(0, Vec::len)
    };
    tools.len() + tools.iter().map(nested).sum::<usize>()
}

/// Refuses more entries of a list than there may be.
pub(super) fn check(param: &str, count: usize, most: usize) -> Result<(), ApiError> {
    if count <= most {
        return Ok(());
    }
    let message = format!("`{param}` makes {count} entries: send at most {most} in one request");
    Err(ApiError::new(ErrorCode::InvalidValue, message).at(param))
}

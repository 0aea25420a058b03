//! Answers made ready for rmcp, which is stricter than servers are.

use rmcp::model::{ErrorCode, ErrorData, ServerResult, Tool};
use serde_json::{Value, json};

use crate::text::visible;

/// What rmcp must know of listed tools: those that it can read, with nothing that it could stumble on.
pub(super) fn mirrored(result: &Value) -> Vec<Tool> {
    let tools = result
        .get("tools")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let known = tools.iter().filter_map(|tool| {
        let schema = tool.get("inputSchema")?.as_object()?.clone();
        Some(Tool::new(
            tool.get("name")?.as_str()?.to_owned(),
            "",
            schema,
        ))
    });
    known.collect()
}

/// An answer to `server/discover`. One that is none comes from a server that does not know the
/// question.
pub(super) fn discovered(result: &Value) -> Result<ServerResult, ErrorData> {
    let is_answer = result.get("supportedVersions").is_some_and(Value::is_array);
    if !is_answer {
        let error = ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            "the answer to `server/discover` is none",
            None,
        );
        return Err(error);
    }
    if let Ok(typed @ ServerResult::DiscoverResult(_)) = serde_json::from_value(result.clone()) {
        return Ok(typed);
    }
    let plain = json!({
        "resultType": "complete",
        "supportedVersions": result["supportedVersions"],
        "capabilities": plain_capabilities(result),
        "ttlMs": 0,
        "cacheScope": "private",
    });
    plainly(plain)
}

/// An answer to `initialize`, or what can be had from it.
pub(super) fn initialized(result: &Value) -> Result<ServerResult, ErrorData> {
    if let Ok(typed @ ServerResult::InitializeResult(_)) = serde_json::from_value(result.clone()) {
        return Ok(typed);
    }
    let text = |key: &str| {
        result
            .pointer(key)
            .and_then(Value::as_str)
            .unwrap_or("unknown")
    };
    let plain = json!({
        "protocolVersion": result["protocolVersion"],
        "capabilities": plain_capabilities(result),
        "serverInfo": {"name": text("/serverInfo/name"), "version": text("/serverInfo/version")},
    });
    plainly(plain)
}

fn plainly(plain: Value) -> Result<ServerResult, ErrorData> {
    match serde_json::from_value(plain) {
        Ok(typed @ (ServerResult::DiscoverResult(_) | ServerResult::InitializeResult(_))) => {
            Ok(typed)
        }
        _ => Err(ErrorData::internal_error(
            "the answer to the opening cannot be understood",
            None,
        )),
    }
}

fn plain_capabilities(result: &Value) -> Value {
    let mut plain = serde_json::Map::new();
    for (name, flags) in [
        ("tools", &["listChanged"][..]),
        ("prompts", &["listChanged"]),
        ("resources", &["listChanged", "subscribe"]),
        ("completions", &[]),
        ("logging", &[]),
    ] {
        let Some(declared) = result["capabilities"].get(name) else {
            continue;
        };
        // Of the others, what is not an object is not a declaration; servers with tools write odd things.
        if name != "tools" && !declared.is_object() {
            continue;
        }
        let is_set = |flag: &&str| declared.get(*flag) == Some(&Value::Bool(true));
        let flags = flags.iter().filter(|flag| is_set(flag));
        let flags: serde_json::Map<_, _> =
            flags.map(|flag| ((*flag).into(), true.into())).collect();
        plain.insert(name.into(), flags.into());
    }
    plain.into()
}

pub(super) fn refusal(error: &Value) -> ErrorData {
    let code = error
        .get("code")
        .and_then(Value::as_i64)
        .and_then(|code| i32::try_from(code).ok());
    let message = match error.get("message").unwrap_or(error) {
        Value::String(text) => visible(text),
        other => other.to_string(),
    };
    let code = code.map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
    ErrorData::new(code, message, error.get("data").cloned())
}

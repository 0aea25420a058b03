//! How calls of MCP servers end: for the client, and for a model that reads of them later.

use haft_core::{CallOutput, ContentPart, OutputPart};
use haft_mcp::{BlockBody, CallRecord, Cause, McpError, RenderOptions, ToolOutcome, capped};
use serde_json::{Map, Value, json};

use crate::stream::HostedEnd;

/// Numbers of errors that the protocol gives, or that its libraries agree on.
const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;
const NOT_SENT: i64 = -32000;
const TIMED_OUT: i64 = -32001;

/// What is said of a call that was cancelled while its server worked on it.
const INTERRUPTED: &str = "The call was cancelled while it ran. Whether it took effect is unknown: check \
                           before you call it again.";

/// What an item says about the end of a call.
#[derive(Debug, PartialEq)]
pub(crate) struct CallEnd {
    pub(crate) output: Option<String>,
    /// Null where there is none.
    pub(crate) error: Value,
    /// What the item holds beside, because the two above do not.
    pub(crate) extra: Map<String, Value>,
}

/// What an item says about this end.
pub(crate) fn call_end(end: &HostedEnd<'_>) -> CallEnd {
    let failed = |error: Value| CallEnd {
        output: None,
        error,
        extra: Map::new(),
    };
    match (&end.record, end.is_error) {
        (Some(CallRecord::Answered(outcome)), false) => CallEnd {
            output: Some(output_text(outcome)),
            error: Value::Null,
            extra: extra(outcome),
        },
        (Some(CallRecord::Answered(outcome)), true) if outcome.is_error => {
            let content = outcome.raw.get("content").filter(|it| it.is_array());
            let content = content.cloned().unwrap_or_else(|| json!([]));
            failed(json!({"type": "mcp_tool_execution_error", "content": content}))
        }
        (Some(CallRecord::Failed(error)), true) => failed(of_failure(error)),
        (_, false) => CallEnd {
            output: Some(end.output.to_text()),
            error: Value::Null,
            extra: Map::new(),
        },
        // The server was not asked, or what it said was not taken.
        (_, true) => {
            let code = match end.error_kind {
                Some("invalid_arguments" | "unknown_tool") => INVALID_PARAMS,
                Some("timed_out") => TIMED_OUT,
                Some("not_executed" | "denied" | "not_approved" | "stopped") => NOT_SENT,
                _ => INTERNAL,
            };
            failed(protocol_error(code, &end.output.to_text()))
        }
    }
}

fn protocol_error(code: i64, message: &str) -> Value {
    json!({"type": "mcp_protocol_error", "code": code, "message": message})
}

fn of_failure(error: &McpError) -> Value {
    let message = error.cause.for_callers();
    match &*error.cause {
        Cause::Protocol { code, message } => protocol_error(*code, message),
        Cause::Status { status, .. } | Cause::Unauthorized { status, .. } => {
            json!({"type": "http_error", "code": status, "message": message})
        }
        // Nobody heard the end of it.
        Cause::Cancelled => protocol_error(NOT_SENT, INTERRUPTED),
        Cause::Idle { .. } | Cause::TimedOut { .. } => protocol_error(TIMED_OUT, &message),
        Cause::Unexpected(_) | Cause::InputRequired { .. } => protocol_error(INTERNAL, &message),
        _ => protocol_error(NOT_SENT, &message),
    }
}

/// The blocks of text; without any, the structured content.
fn output_text(outcome: &ToolOutcome) -> String {
    let texts = outcome
        .content
        .iter()
        .filter_map(|block| match &block.body {
            BlockBody::Text(text) => Some(text.as_str()),
            _ => None,
        });
    let texts: Vec<_> = texts.collect();
    match &outcome.structured {
        Some(structured) if texts.iter().all(|text| text.trim().is_empty()) => {
            structured.to_string()
        }
        _ => texts.join("\n\n"),
    }
}

fn extra(outcome: &ToolOutcome) -> Map<String, Value> {
    let mut extra = Map::new();
    let is_text = |body: &BlockBody| matches!(body, BlockBody::Text(_));
    let has_more = outcome.content.iter().any(|block| !is_text(&block.body));
    let content = outcome.raw.get("content").filter(|_| has_more);
    extra.extend(content.map(|content| ("content".to_owned(), content.clone())));
    let structured = outcome.structured.as_ref();
    let structured = structured.filter(|_| !outcome.content.is_empty());
    extra.extend(structured.map(|it| ("structured_content".to_owned(), it.clone())));
    extra
}

/// What a model reads of a call that an item tells of, and whether it failed.
pub(crate) fn output_of(item: &Map<String, Value>, takes_images: bool) -> (CallOutput, bool) {
    let error = item.get("error").filter(|error| !error.is_null());
    let content = match error {
        Some(error) => error.get("content"),
        None => item.get("content"),
    };
    let is_error = error.is_some();
    if let Some(content) = content.filter(|content| content.is_array()) {
        let outcome = ToolOutcome::read(json!({"content": content, "isError": is_error}));
        return (rendered(&outcome, takes_images), is_error);
    }
    let text = match error {
        Some(Value::String(text)) => text.clone(),
        Some(error) => match error.get("message").and_then(Value::as_str) {
            Some(message) => message.to_owned(),
            None => error.to_string(),
        },
        None => {
            let output = item.get("output").and_then(Value::as_str);
            output.unwrap_or_default().to_owned()
        }
    };
    let text = capped(&text, RenderOptions::default().text_bytes);
    (CallOutput::Text(text), is_error)
}

fn rendered(outcome: &ToolOutcome, takes_images: bool) -> CallOutput {
    let options = RenderOptions {
        takes_images,
        ..RenderOptions::default()
    };
    let output = outcome.render(&options).output;
    let parts = output.parts_for_model();
    let has_images = parts
        .iter()
        .any(|part| matches!(part, OutputPart::Image { .. }));
    if !has_images {
        return CallOutput::Text(output.text_for_model());
    }
    let parts = parts.into_iter().filter_map(|part| match part {
        OutputPart::Text { text } => Some(ContentPart::InputText { text }),
        OutputPart::Image { media_type, data } => Some(ContentPart::InputImage {
            image_url: format!("data:{media_type};base64,{data}"),
            detail: None,
        }),
        _ => None,
    });
    CallOutput::Parts(parts.collect())
}

#[cfg(test)]
#[path = "call_end_tests.rs"]
mod tests;

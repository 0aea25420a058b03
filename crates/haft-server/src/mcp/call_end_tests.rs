#![allow(clippy::unwrap_used)]

use std::time::Duration;

use haft_mcp::{Label, Phase, TransportKind};

use super::*;

fn end(record: Option<CallRecord>, error_kind: Option<&'static str>) -> CallEnd {
    let output = CallOutput::Text("what the model reads".into());
    call_end(&HostedEnd {
        is_error: error_kind.is_some(),
        error_kind,
        output: &output,
        duration_ms: 1,
        is_repaired: false,
        turn: 1,
        record,
    })
}

fn answered(raw: Value) -> Option<CallRecord> {
    Some(CallRecord::Answered(ToolOutcome::read(raw)))
}

fn failed(cause: Cause) -> CallEnd {
    let error = McpError {
        server: Label::new("air").unwrap(),
        transport: TransportKind::Http,
        era: None,
        phase: Phase::Call,
        elapsed: Duration::from_secs(1),
        cause: Box::new(cause),
        stderr: "secrets of the operator".into(),
    };
    end(Some(CallRecord::Failed(error)), Some("failed"))
}

#[test]
fn without_text_the_structured_content_is_the_output() {
    let told = end(
        answered(json!({"content": [], "structuredContent": {"a": 1}})),
        None,
    );
    assert_eq!(told.output.as_deref(), Some(r#"{"a":1}"#));
    assert_eq!(told.extra, Map::new());
    let told = end(
        answered(json!({"content": [{"type": "text", "text": "a"},
        {"type": "text", "text": "b"}]})),
        None,
    );
    assert_eq!(told.output.as_deref(), Some("a\n\nb"));
}

#[test]
fn every_failure_has_one_of_the_three_forms() {
    for (cause, kind, code) in [
        (
            Cause::Protocol {
                code: -7,
                message: "m".into(),
            },
            "mcp_protocol_error",
            -7,
        ),
        (
            Cause::Status {
                status: 502,
                detail: String::new(),
            },
            "http_error",
            502,
        ),
        (
            Cause::Unauthorized {
                status: 401,
                challenge: None,
            },
            "http_error",
            401,
        ),
        (
            Cause::Idle {
                limit: Duration::from_secs(1),
            },
            "mcp_protocol_error",
            -32001,
        ),
        (Cause::Unreachable("x".into()), "mcp_protocol_error", -32000),
        (Cause::Unexpected("x".into()), "mcp_protocol_error", -32603),
    ] {
        let told = failed(cause.clone());
        assert_eq!(
            (&told.error["type"], &told.error["code"]),
            (&json!(kind), &json!(code))
        );
        assert!(told.error["message"].is_string(), "{cause:?}");
        assert_eq!(told.output, None);
        assert!(!told.error.to_string().contains("secrets"), "{cause:?}");
    }
    for (kind, code) in [
        ("invalid_arguments", -32602),
        ("timed_out", -32001),
        ("not_executed", -32000),
        ("outcome_unknown", -32603),
    ] {
        let told = end(None, Some(kind));
        assert_eq!(told.error["code"], code, "{kind}");
        assert_eq!(told.error["message"], "what the model reads");
    }
    // The server was content, but what it gave was not taken.
    let told = end(answered(json!({"content": []})), Some("too_large"));
    assert_eq!(told.error["type"], "mcp_protocol_error");
}

#[test]
fn a_model_reads_again_what_the_item_keeps() {
    let read = |item: Value, takes_images| {
        let Value::Object(item) = item else {
            panic!("{item}")
        };
        output_of(&item, takes_images)
    };
    let picture = json!({"output": "", "error": null, "content": [
        {"type": "text", "text": "look"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"}]});
    let (output, is_error) = read(picture.clone(), true);
    assert!(!is_error);
    assert!(
        matches!(&output, CallOutput::Parts(parts) if parts.len() == 2),
        "{output:?}"
    );
    let (output, _) = read(picture, false);
    assert!(
        output.to_text().starts_with("look\n\n[image image/png"),
        "{output:?}"
    );
    let error = json!({"output": null, "error": {"type": "mcp_tool_execution_error",
        "content": [{"type": "text", "text": "no"}]}});
    assert_eq!(read(error, true), (CallOutput::Text("no".into()), true));
    let error = json!({"error": {"type": "http_error", "code": 500, "message": "down"}});
    assert_eq!(read(error, true), (CallOutput::Text("down".into()), true));
    // As long as it was the first time.
    let (output, _) = read(json!({"output": "x".repeat(300_000)}), true);
    assert!(output.to_text().len() <= RenderOptions::default().text_bytes);
}

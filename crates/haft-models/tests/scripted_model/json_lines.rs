//! Scripts as JSON lines.

use haft_core::{FinishReason, Item, ToolChoice};
use haft_models::testing::{
    Chunks, ExpectedOutput, Fault, Pieces, Script, Step, fault, offers, say, think, user_contains,
};
use serde_json::{Value, json};

/// A step that uses every member.
fn full_step() -> Step {
    think("hm")
        .named("full")
        .say("text")
        .refuse("no")
        .call("a", json!({"x": [1, "ü"]}))
        .call("b", "{broken")
        .with_id("mine")
        .item(Item::Other(
            json!({"type": "mcp_call", "id": "mcp_1"})
                .as_object()
                .unwrap()
                .clone(),
        ))
        .when(offers(["a"]))
        .expect(
            user_contains("w")
                .instructions_contain("i")
                .tool_choice(ToolChoice::allowed(["a"]))
                .parallel_tool_calls(true)
                .output(ExpectedOutput::default().of("call_1").says("t").is_error())
                .items(3)
                .body(json!({"model": "m"})),
        )
        .finish(FinishReason::Length)
        .usage(3, 4)
        .pieces(Pieces::Sizes(vec![1, 2]))
        .chunks(Chunks::Each(5))
        .delay_ms(9)
        .fault(Fault::CutAfterBytes(100))
        .times(2)
}

#[test]
fn a_script_survives_json_lines() {
    let faults = [
        Fault::status(429)
            .with_body("plain")
            .with_header("retry-after", "1"),
        Fault::Html(502),
        Fault::Closed,
        Fault::CutAfterEvents(1),
        Fault::CutAfterBytes(2),
        Fault::EndAfterEvents(3),
        Fault::Hang,
        Fault::HangAfterEvents(4),
        Fault::error_event(5, "m"),
        Fault::garbage(6),
        Fault::NoDone,
        Fault::MissingCallIds,
        Fault::RepeatedCallIds,
        Fault::ObjectArguments,
    ];
    let steps = [
        full_step(),
        Step::default(),
        say("x").without_usage().forever(),
    ];
    let script = Script::from(steps.into_iter().chain(faults.into_iter().map(fault)));
    let lines = script.to_json_lines();
    assert_eq!(lines.lines().count(), 17);
    assert_eq!(Script::from_json_lines(&lines).unwrap(), script);
    let crlf = lines.replace('\n', "\r\n\r\n");
    assert_eq!(Script::from_json_lines(&crlf).unwrap(), script);
}

#[test]
fn the_json_form_is_as_documented() {
    let line = full_step();
    let json: Value = serde_json::to_value(line).unwrap();
    assert_eq!(
        json,
        json!({
            "name": "full",
            "when": {"tools": {"exactly": ["a"]}},
            "expect": {
                "user": {"contains": "w"},
                "instructions": {"contains": "i"},
                "tool_choice": {"type": "allowed_tools", "mode": "auto",
                    "tools": [{"type": "function", "name": "a"}]},
                "parallel_tool_calls": true,
                "outputs": [{"call_id": "call_1", "text": {"equals": "t"}, "is_error": true}],
                "items": 3,
                "body": {"model": "m"},
            },
            "reasoning": "hm",
            "text": "text",
            "refusal": "no",
            "calls": [
                {"name": "a", "arguments": {"x": [1, "ü"]}},
                {"id": "mine", "name": "b", "arguments": "{broken"},
            ],
            "items": [{"type": "mcp_call", "id": "mcp_1"}],
            "finish": "length",
            "usage": {"input_tokens": 3, "output_tokens": 4, "cached_input_tokens": 0,
                "reasoning_tokens": 0},
            "pieces": [1, 2],
            "chunks": 5,
            "delay_ms": 9,
            "fault": {"cut_after_bytes": 100},
            "repeat": 2,
        })
    );
}

#[test]
fn a_line_that_is_no_step_is_refused_with_its_number() {
    for (line, word) in [
        (r#"{"txt":"b"}"#, "`txt`"),
        (r#"{"expect":{"users":1}}"#, "`users`"),
        (r#"{"expect":{"user":{"starts":"b"}}}"#, "`starts`"),
        (r#"{"expect":{"outputs":[{"id":"b"}]}}"#, "`id`"),
        (r#"{"calls":[{"name":"b","arguments":{},"x":1}]}"#, "`x`"),
        (r#"{"calls":[{"name":"b"}]}"#, "`arguments`"),
        (r#"{"fault":"explode"}"#, "`explode`"),
        (r#"{"fault":{"status":{"code":429,"boddy":1}}}"#, "`boddy`"),
        (r#"{"usage":{"tokens":3}}"#, "`tokens`"),
        (r#"{"usage":"some"}"#, "`none`"),
        (r#"{"pieces":0}"#, "`whole`"),
        (r#"{"chunks":"whole"}"#, "`events`"),
        (r#"{"repeat":0}"#, "`forever`"),
        (r#"{"text":"b""#, "EOF"),
        ("[]", "expected an object"),
    ] {
        let text = format!("{{\"text\":\"a\"}}\n\n{line}\n");
        let error = Script::from_json_lines(&text).unwrap_err();
        assert_eq!(error.line, 3, "{line}");
        assert!(error.to_string().contains(word), "{line}: {error}");
    }
}

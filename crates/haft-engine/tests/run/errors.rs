//! A bad call never ends a run: the model reads what was wrong, word for word.

use std::time::Duration;

use haft_core::{ToolDefinition, ToolError, ToolOutput, dynamic_tool};
use haft_engine::{CallStatus, LoopOptions, Run};
use serde_json::json;

use crate::results;
use crate::script::{Script, calls, says};
use crate::tools::{echo, sleeper, tool};

/// What the model reads after one call of one tool, beside a good call that must not suffer.
async fn message(
    tool: std::sync::Arc<dyn haft_core::ToolObject>,
    name: &str,
    arguments: &str,
    options: LoopOptions,
) -> (String, CallStatus) {
    let model = Script::new([
        calls([
            ("bad", name, arguments),
            ("good", "echo", r#"{"text":"fine"}"#),
        ]),
        says("done"),
    ]);
    let outcome = Run::new(model)
        .tools([tool, echo()])
        .options(options)
        .user("go")
        .await
        .unwrap();
    assert!(outcome.is_completed(), "{:?}", outcome.end);
    let results = results(&outcome);
    assert_eq!(results[1].output, "fine");
    assert!(results[0].is_error);
    (results[0].output.clone(), outcome.tool_calls[0].status)
}

fn by_default() -> LoopOptions {
    LoopOptions::default()
}

/// R7, R24
#[tokio::test]
async fn unknown_tools_and_broken_arguments() {
    let deep = format!(r#"{{"text":{}1{}}}"#, "[".repeat(200), "]".repeat(200));
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(1_048_576));
    for (name, arguments, expected) in [
        (
            "nope",
            "{}",
            "Unknown tool 'nope'. Available tools: x, echo.",
        ),
        (
            "x",
            r#"{"text" oops}"#,
            "Tool 'x': arguments are not valid JSON (line 1, column 9).",
        ),
        (
            "x",
            r#"{"text":"a","text":"b"}"#,
            "Tool 'x': key 'text' occurs twice in the arguments.",
        ),
        (
            "x",
            &deep,
            "Tool 'x': arguments are nested deeper than 128.",
        ),
        (
            "x",
            &large,
            "Tool 'x': arguments are larger than 1048576 bytes.",
        ),
        ("x", "[1]", "Tool 'x': arguments must be a JSON object."),
        (
            "x",
            r#"{"zz":1}"#,
            "Tool 'x': invalid arguments: unexpected field 'zz'",
        ),
        (
            "x",
            r#"{"text":5}"#,
            "Tool 'x': invalid arguments: 'text' must be string, got number",
        ),
    ] {
        let x = tool("x", |_| unreachable!("nothing of this may run"));
        let (text, status) = message(x, name, arguments, by_default()).await;
        assert_eq!(text, expected);
        assert!(matches!(status, CallStatus::Unknown | CallStatus::Refused));
    }
}

/// R24
#[tokio::test]
async fn empty_blank_and_null_arguments_are_no_arguments() {
    for arguments in ["", "  ", "null", "{}"] {
        let model = Script::new([calls([("a", "echo", arguments)]), says("done")]);
        let outcome = Run::new(model).tools([echo()]).user("go").await.unwrap();
        assert_eq!(outcome.tool_calls[0].status, CallStatus::Succeeded);
    }
}

/// R9
#[tokio::test]
async fn arguments_are_never_coerced() {
    let numbers = ToolDefinition::builder("x")
        .parameters(json!({"type": "object", "properties": {"n": {"type": "integer"}}}))
        .build()
        .unwrap();
    let x = || dynamic_tool(numbers.clone(), |arguments, _| async move { Ok(arguments) });
    for bad in [r#"{"n":2.5}"#, r#"{"n":"3"}"#, r#"{"n":true}"#] {
        let (text, _) = message(x(), "x", bad, by_default()).await;
        assert!(
            text.starts_with("Tool 'x': invalid arguments: 'n' must be integer"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn handlers_that_fail() {
    let fails = tool("x", |_| Err(ToolError::new("kaput")));
    let (text, status) = message(fails, "x", "{}", by_default()).await;
    assert_eq!(
        (text.as_str(), status),
        ("Tool 'x' failed: kaput", CallStatus::Failed)
    );

    let unsuccessful = tool("x", |_| Ok(ToolOutput::failure("not today")));
    let (text, status) = message(unsuccessful, "x", "{}", by_default()).await;
    assert_eq!((text.as_str(), status), ("not today", CallStatus::Failed));

    let panics = tool("x", |_| panic!("boom"));
    let (text, status) = message(panics, "x", "{}", by_default()).await;
    assert_eq!(
        (text.as_str(), status),
        ("Tool 'x' panicked: boom", CallStatus::Panicked)
    );
}

#[tokio::test]
async fn handlers_that_take_too_long() {
    let options = LoopOptions {
        tool_timeout: Duration::from_millis(50),
        ..by_default()
    };
    let (text, status) = message(sleeper("x"), "x", r#"{"text":"60000"}"#, options).await;
    assert_eq!(text, "Tool 'x' timed out after 0.05s.");
    assert_eq!(status, CallStatus::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn a_tools_own_timeout_wins() {
    let annotations = haft_core::Annotations {
        timeout_ms: Some(90_000),
        ..haft_core::Annotations::default()
    };
    let patient = dynamic_tool(
        crate::tools::definition("x", annotations),
        |_, _| async move {
            tokio::time::sleep(Duration::from_mins(1)).await;
            Ok("late")
        },
    );
    let model = Script::new([calls([("a", "x", "{}")]), says("done")]);
    let outcome = Run::new(model).tools([patient]).user("go").await.unwrap();
    assert_eq!(results(&outcome)[0].output, "late");
}

#[tokio::test]
async fn results_that_are_too_large() {
    let large = tool("x", |_| Ok(ToolOutput::text("y".repeat(1_048_577))));
    let (text, status) = message(large, "x", "{}", by_default()).await;
    assert_eq!(
        text,
        "Tool 'x' returned 1048577 bytes, more than the limit of 1048576."
    );
    assert_eq!(status, CallStatus::TooLarge);
}

fn promising(strict_output: bool) -> (std::sync::Arc<dyn haft_core::ToolObject>, LoopOptions) {
    let definition = ToolDefinition::builder("x")
        .parameters(json!({"type": "object"}))
        .output_schema(json!({"type": "object", "required": ["n"]}))
        .build()
        .unwrap();
    let breaks_its_word = dynamic_tool(definition, |_, _| async { Ok(json!({"m": 1})) });
    let options = LoopOptions {
        strict_output,
        ..by_default()
    };
    (breaks_its_word, options)
}

/// R41
#[tokio::test]
async fn a_result_that_breaks_its_schema_is_an_error_where_that_is_demanded() {
    let (tool, options) = promising(true);
    let (text, status) = message(tool, "x", "{}", options).await;
    assert_eq!(
        text,
        "Tool 'x' returned an invalid result: missing field 'n'"
    );
    assert_eq!(status, CallStatus::InvalidOutput);
}

/// R41
#[tokio::test]
async fn a_result_that_breaks_its_schema_is_delivered_and_marked_otherwise() {
    let (tool, options) = promising(false);
    let model = Script::new([calls([("a", "x", "{}")]), says("done")]);
    let outcome = Run::new(model)
        .tools([tool])
        .options(options)
        .user("go")
        .await;
    let outcome = outcome.unwrap();
    assert_eq!(results(&outcome)[0].output, r#"{"m":1}"#);
    assert!(outcome.tool_calls[0].output_mismatch);
    assert_eq!(outcome.tool_calls[0].status, CallStatus::Succeeded);
}

#[tokio::test]
async fn at_most_twenty_tools_are_named_to_a_model_that_calls_an_unknown_one() {
    let tools: Vec<_> = (0..30)
        .map(|n| tool(&format!("t{n:02}"), |_| Ok(ToolOutput::empty())))
        .collect();
    let model = Script::new([calls([("a", "nope", "{}")]), says("done")]);
    let outcome = Run::new(model).tools(tools).user("go").await.unwrap();
    let text = &results(&outcome)[0].output;
    assert!(text.ends_with("t19, …."), "{text}");
}

#[tokio::test]
async fn a_host_may_have_errors_in_words_of_its_own() {
    let failing = tool("x", |_| Err(ToolError::new("no")));
    let model = Script::new([
        calls([
            ("c1", "nope", "{}"),
            ("c2", "x", r#"{"text":""}"#),
            ("c3", "echo", r#"{"text":"fine"}"#),
        ]),
        says("done"),
    ]);
    let outcome = Run::new(model)
        .tools([failing, echo()])
        .error_words(|words| format!("<{words}>"))
        .user("go")
        .await
        .unwrap();
    let said = [
        "<Unknown tool 'nope'. Available tools: x, echo.>",
        "<Tool 'x' failed: no>",
        "fine",
    ];
    assert_eq!(crate::texts(&outcome), said);
    let sent = crate::outputs(&outcome.items);
    assert_eq!(sent[0].1, said[0]);
}

//! Calls, and what servers do to them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haft_core::Cancel;
use haft_mcp::{BlockBody, CallOptions, Cause, Phase, TraceContext};
use serde_json::{Value, json};

use crate::kit::{LONG, call, call_text, connected, fake, object, open, text};

#[tokio::test]
async fn whatever_a_tool_gives_is_an_outcome() {
    let connection = connected(&["legacy"]).await;
    for (result, shown, warning) in [
        (json!({"content": [{"type": "text", "text": "x"}]}), "x", ""),
        (
            json!({"content": [{"type": "hologram"}, {"type": "text", "text": "x"}]}),
            "[unsupported content: hologram]\n\nx",
            "content of type `hologram` cannot be read",
        ),
        (
            json!({"content": [{"type": "text", "text": "x", "annotations": {"audience": ["robots"], "priority": "high"}}]}),
            "x",
            "",
        ),
        (
            json!({"content": [{"type": "image", "data": "AAAA"}]}),
            "[image application/octet-stream, 3 bytes]",
            "content without `mimeType`",
        ),
        (
            json!({"content": [{"type": "text", "text": "x"}], "resultType": "novel"}),
            "x",
            "the result is of an unknown type: `novel`",
        ),
        (json!({"structuredContent": [1, 2]}), "[1,2]", ""),
        (json!({"structuredContent": null}), "null", ""),
        (json!({}), "", "the result is empty"),
        (
            json!({"toolResult": 7}),
            "7",
            "the result has the form of before 2024-11-05",
        ),
        (json!("bare"), "bare", "the result is no object"),
    ] {
        let outcome = call(&connection, "raw", json!({ "result": result }))
            .await
            .unwrap();
        assert_eq!(text(&outcome), shown, "{result}");
        assert_eq!(outcome.warnings.join("; "), warning, "{result}");
        assert_eq!(*outcome.raw, result, "nothing is lost on the way");
    }
}

#[tokio::test]
async fn null_said_is_not_nothing_said_over_the_wire() {
    for era in ["legacy", "modern"] {
        let connection = connected(&[era]).await;
        let said = call(
            &connection,
            "raw",
            json!({"result": {"structuredContent": null}}),
        )
        .await
        .unwrap();
        assert_eq!(said.structured, Some(Value::Null));
        let unsaid = call(&connection, "raw", json!({"result": {"content": []}}))
            .await
            .unwrap();
        assert_eq!(unsaid.structured, None);
    }
}

#[tokio::test]
async fn a_tool_that_fails_is_an_outcome_and_a_refusal_an_error() {
    let connection = connected(&["modern"]).await;
    let failed = json!({"content": [{"type": "text", "text": "no such file"}], "isError": true});
    let outcome = call(&connection, "raw", json!({ "result": failed }))
        .await
        .unwrap();
    assert!(outcome.is_error);
    assert_eq!(
        outcome.content[0].body,
        BlockBody::Text("no such file".into())
    );
    let error = call(&connection, "no_such_tool", json!({}))
        .await
        .unwrap_err();
    assert_eq!(error.phase, Phase::Call);
    assert_eq!(
        *error.cause,
        Cause::Protocol {
            code: -32602,
            message: "unknown tool: no_such_tool".into()
        }
    );
    assert!(!error.may_have_happened());
}

#[tokio::test]
async fn noise_double_answers_and_ids_as_text_harm_nobody() {
    let connection = connected(&["legacy"]).await;
    assert_eq!(
        call_text(&connection, "noise", json!({})).await,
        "through the noise"
    );
    assert_eq!(call_text(&connection, "twice", json!({})).await, "first");
    assert_eq!(
        call_text(&connection, "string_id", json!({})).await,
        "as text"
    );
    assert_eq!(
        call_text(&connection, "echo", json!({"still": "here"})).await,
        r#"{"still":"here"}"#
    );
}

#[tokio::test]
async fn fifty_megabytes_fail_their_own_call_only() {
    let connection = Arc::new(connected(&["legacy"]).await);
    for id_last in [false, true] {
        let beside = tokio::spawn({
            let connection = Arc::clone(&connection);
            async move { call_text(&connection, "sleep", json!({"ms": 300})).await }
        });
        let error = call(
            &connection,
            "huge",
            json!({"bytes": 50 << 20, "id_last": id_last}),
        )
        .await
        .unwrap_err();
        let text = error.cause.to_string();
        assert!(text.starts_with("result too large: 524288"), "{text}");
        let end = "bytes (limit 16 MiB); raise `max_message_bytes` of the server";
        assert!(text.ends_with(end), "{text}");
        assert!(error.may_have_happened());
        assert_eq!(beside.await.unwrap(), "slept");
    }
    assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
}

#[tokio::test]
async fn ten_megabytes_come_through_and_are_shown_cut() {
    let connection = connected(&["modern"]).await;
    let outcome = call(&connection, "huge", json!({"bytes": 10 << 20}))
        .await
        .unwrap();
    assert!(text(&outcome).len() <= 100_000);
}

#[tokio::test]
async fn a_request_that_is_too_large_is_not_sent() {
    let mut settings = fake(&["legacy"]);
    settings.limits.message_bytes = 100_000;
    let connection = open(settings).await.unwrap();
    let error = call(&connection, "echo", json!({"x": "y".repeat(200_000)}))
        .await
        .unwrap_err();
    assert!(
        matches!(*error.cause, Cause::RequestTooLarge { limit: 100_000, .. }),
        "{error}"
    );
    assert!(!error.may_have_happened());
    assert_eq!(call_text(&connection, "calls", json!({})).await, "1");
}

#[tokio::test]
async fn a_server_that_dies_in_mid_call_leaves_its_last_words() {
    let mut settings = fake(&["legacy"]);
    let haft_mcp::TransportSettings::Stdio(stdio) = &mut settings.transport else {
        panic!()
    };
    stdio.env.insert("TOKEN".into(), "hunter2-token".into());
    let connection = open(settings).await.unwrap();
    let error = call(&connection, "die", json!({})).await.unwrap_err();
    assert!(error.may_have_happened());
    let shown = error.to_string();
    assert!(
        shown.starts_with("server `fake` (stdio, legacy), call after "),
        "{shown}"
    );
    assert!(
        shown.ends_with(
            "connection lost, the action may have happened: the process ended with exit status: 3\n\
             the last lines of its standard error:\nout of cheese, token [redacted]"
        ),
        "{shown}"
    );
    assert!(connection.is_closed());
    let error = call(&connection, "echo", json!({})).await.unwrap_err();
    assert!(
        matches!(*error.cause, Cause::ConnectionLost { sent: false, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn secrets_do_not_come_back_in_a_refusal() {
    let mut settings = fake(&["legacy"]);
    let haft_mcp::TransportSettings::Stdio(stdio) = &mut settings.transport else {
        panic!()
    };
    stdio.env.insert("TOKEN".into(), "hunter2-token".into());
    let connection = open(settings).await.unwrap();
    let error = call(&connection, "refuse", json!({})).await.unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("the server says: not today, token [redacted] (code -32000)"),
        "{error}"
    );
    assert!(!format!("{error:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_silent_call_ends_with_its_idle_limit_and_the_server_is_told() {
    for era in ["legacy", "modern"] {
        let connection = connected(&[era]).await;
        let options = CallOptions {
            idle_timeout: Some(Duration::from_millis(200)),
            ..CallOptions::default()
        };
        let error = connection
            .call_tool("silent", object(json!({})), options)
            .await
            .unwrap_err();
        assert_eq!(
            *error.cause,
            Cause::Idle {
                limit: Duration::from_millis(200)
            }
        );
        assert_eq!(cancelled_calls(&connection, 1).await, 1, "{era}");
    }
}

#[tokio::test]
async fn progress_keeps_a_call_alive_up_to_its_hard_limit() {
    let connection = connected(&["legacy"]).await;
    let options = || CallOptions {
        idle_timeout: Some(Duration::from_secs(1)),
        call_timeout: Some(Duration::from_secs(3)),
        ..CallOptions::default()
    };
    let alive = object(json!({"count": 7, "every_ms": 200}));
    let outcome = connection
        .call_tool("progress", alive, options())
        .await
        .unwrap();
    assert_eq!(text(&outcome), "done");
    let endless = object(json!({"count": 100_000, "every_ms": 100}));
    let error = connection
        .call_tool("progress", endless, options())
        .await
        .unwrap_err();
    assert_eq!(
        *error.cause,
        Cause::TimedOut {
            limit: Duration::from_secs(3),
            setting: "call_timeout"
        }
    );
}

#[tokio::test]
async fn progress_is_heard_from_its_beginning_and_a_flood_is_thinned() {
    for era in ["legacy", "modern"] {
        let connection = connected(&[era]).await;
        let heard = Mutex::new(Vec::new());
        let mut on_progress =
            |progress: haft_core::ToolProgress| heard.lock().unwrap().push(progress);
        let options = CallOptions {
            on_progress: Some(&mut on_progress),
            ..CallOptions::default()
        };
        let arguments = object(json!({"count": 20_000}));
        let outcome = connection
            .call_tool("progress", arguments, options)
            .await
            .unwrap();
        assert_eq!(text(&outcome), "done");
        let heard = heard.into_inner().unwrap();
        assert!(!heard.is_empty() && heard.len() < 200, "{}", heard.len());
        assert_eq!(heard.last().unwrap().progress, Some(20_000.0));
        assert_eq!(heard[0].total, Some(20_000.0));
        assert!(heard.is_sorted_by(|one, next| one.progress <= next.progress));
    }
}

/// How many calls the server was told to give up, waiting for this many.
async fn cancelled_calls(connection: &haft_mcp::Connection, expected: usize) -> usize {
    let begin = Instant::now();
    loop {
        let told: Vec<Value> =
            serde_json::from_str(&call_text(connection, "cancelled", json!({})).await).unwrap();
        if told.len() >= expected || begin.elapsed() > LONG {
            return told.len();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_dropped_call_and_a_cancelled_one_are_told_in_both_eras() {
    for era in ["legacy", "modern"] {
        let connection = connected(&[era]).await;
        let dropped = connection.call_tool("silent", object(json!({})), CallOptions::default());
        let gone = tokio::time::timeout(Duration::from_millis(100), dropped).await;
        assert!(gone.is_err());
        assert_eq!(cancelled_calls(&connection, 1).await, 1, "{era}");

        let cancel = Cancel::new();
        let options = CallOptions {
            cancel: cancel.clone(),
            ..CallOptions::default()
        };
        let called = connection.call_tool("silent", object(json!({})), options);
        let (error, ()) = tokio::join!(called, async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            cancel.cancel();
        });
        assert_eq!(*error.unwrap_err().cause, Cause::Cancelled);
        assert_eq!(cancelled_calls(&connection, 2).await, 2, "{era}");
    }
}

#[tokio::test]
async fn a_call_cancelled_before_it_began_is_not_sent() {
    let connection = connected(&["legacy"]).await;
    let cancel = Cancel::new();
    cancel.cancel();
    let options = CallOptions {
        cancel,
        ..CallOptions::default()
    };
    let error = connection
        .call_tool("echo", object(json!({})), options)
        .await
        .unwrap_err();
    assert_eq!(*error.cause, Cause::Cancelled);
    assert_eq!(call_text(&connection, "calls", json!({})).await, "1");
}

#[tokio::test]
async fn a_late_answer_is_dropped_and_the_next_call_gets_its_own() {
    let connection = connected(&["legacy"]).await;
    let options = CallOptions {
        call_timeout: Some(Duration::from_millis(100)),
        ..CallOptions::default()
    };
    let error = connection
        .call_tool("sleep", object(json!({"ms": 250})), options)
        .await
        .unwrap_err();
    assert!(matches!(*error.cause, Cause::TimedOut { .. }), "{error}");
    assert_eq!(
        call_text(&connection, "sleep", json!({"ms": 300})).await,
        "slept"
    );
    assert_eq!(
        call_text(&connection, "echo", json!({"own": 1})).await,
        r#"{"own":1}"#
    );
}

#[tokio::test]
async fn calls_run_beside_each_other_up_to_the_limit() {
    let mut settings = fake(&["legacy"]);
    settings.limits.concurrent_calls = Some(2);
    let connection = Arc::new(open(settings).await.unwrap());
    let silent = || CallOptions {
        call_timeout: Some(Duration::from_millis(400)),
        ..CallOptions::default()
    };
    let (one, two, three) = tokio::join!(
        connection.call_tool("silent", object(json!({})), silent()),
        connection.call_tool("silent", object(json!({})), silent()),
        // It waits for a place, within its own time.
        connection.call_tool(
            "echo",
            object(json!({})),
            CallOptions {
                call_timeout: Some(Duration::from_millis(100)),
                ..CallOptions::default()
            }
        ),
    );
    for ended in [one, two, three] {
        assert!(matches!(*ended.unwrap_err().cause, Cause::TimedOut { .. }));
    }
    assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
}

#[tokio::test]
async fn a_server_that_wants_to_be_asked_again_is_within_bounds() {
    let connection = connected(&["modern"]).await;
    assert_eq!(
        call_text(&connection, "state", json!({"rounds": 3})).await,
        "after 3 rounds"
    );
    let error = call(&connection, "state", json!({"rounds": 11}))
        .await
        .unwrap_err();
    assert_eq!(
        *error.cause,
        Cause::InputRequired {
            wanted: "more than 10 rounds of input".into()
        }
    );
    let error = call(&connection, "ask", json!({})).await.unwrap_err();
    assert_eq!(
        error.cause.to_string(),
        "the server asks for input that cannot be given here: a form to be filled in (elicitation). \
         It asks: Who?"
    );
}

#[tokio::test]
async fn the_trace_goes_along_and_nothing_else_of_the_caller() {
    for era in ["legacy", "modern"] {
        let connection = connected(&[era]).await;
        let trace = TraceContext {
            parent: Some("00-abc-def-01".into()),
            ..TraceContext::default()
        };
        let options = CallOptions {
            trace,
            ..CallOptions::default()
        };
        let outcome = connection
            .call_tool("meta", object(json!({})), options)
            .await
            .unwrap();
        let seen: Value = serde_json::from_str(&text(&outcome)).unwrap();
        assert_eq!(seen["meta"]["traceparent"], "00-abc-def-01");
        let mut keys: Vec<_> = seen["meta"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        keys.sort_unstable();
        if era == "legacy" {
            assert_eq!(keys, ["progressToken", "traceparent"]);
            assert_eq!(seen["initialize"]["clientInfo"]["name"], "haft");
            assert_eq!(seen["initialize"]["capabilities"], json!({}));
            assert_eq!(seen["initialize"]["protocolVersion"], "2025-11-25");
        } else {
            let own = "io.modelcontextprotocol/";
            let expected = ["clientCapabilities", "clientInfo", "protocolVersion"]
                .map(|key| format!("{own}{key}"));
            assert_eq!(keys[..3], expected);
            assert_eq!(keys[3..], ["progressToken", "traceparent"]);
        }
    }
}

#[tokio::test]
async fn a_server_that_stops_reading_does_not_hold_a_call_for_ever() {
    let mut settings = fake(&["legacy"]);
    settings.limits.message_bytes = 64 * 1024 * 1024;
    let connection = open(settings).await.unwrap();
    // The pipe is full while the server writes an answer that nobody reads fast enough.
    let options = CallOptions {
        call_timeout: Some(Duration::from_millis(300)),
        ..CallOptions::default()
    };
    let error = connection
        .call_tool("silent", object(json!({"x": "y".repeat(8 << 20)})), options)
        .await;
    assert!(matches!(*error.unwrap_err().cause, Cause::TimedOut { .. }));
}

#[tokio::test]
async fn what_a_server_asks_is_answered_in_the_older_era_only() {
    let connection = connected(&["legacy"]).await;
    for (method, key, code) in [
        ("ping", "result", Value::Null),
        ("roots/list", "error", json!(-32601)),
        ("sampling/createMessage", "error", json!(-32601)),
        ("elicitation/create", "error", json!(-32601)),
        ("no/such", "error", json!(-32601)),
    ] {
        let params = match method {
            "sampling/createMessage" => json!({"messages": [], "maxTokens": 1}),
            "elicitation/create" => {
                json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}})
            }
            _ => json!({}),
        };
        let arguments = json!({"method": method, "params": params});
        let replies: Value =
            serde_json::from_str(&call_text(&connection, "question", arguments).await).unwrap();
        assert_eq!(replies[0]["id"], "q", "{method}: {replies}");
        assert!(replies[0].get(key).is_some(), "{method}: {replies}");
        assert_eq!(replies[0]["error"]["code"], code, "{method}");
    }
    let connection = connected(&["modern"]).await;
    for method in ["ping", "roots/list"] {
        let arguments = json!({"method": method, "params": {}});
        assert_eq!(
            call_text(&connection, "question", arguments).await,
            "[]",
            "{method}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_costs_its_own_call_only() {
    let connection = connected(&["legacy"]).await;
    // Values that are nested too deep or are not UTF-8 are replaced.
    for broken in ["deep", "no_text"] {
        let answer = call(&connection, "unreadable", json!({ "how": broken }));
        assert!(!answer.await.unwrap().is_error);
    }
    let error = call(&connection, "verbatim", json!({"result": "{"}));
    let error = error.await.unwrap_err();
    assert!(
        error.to_string().contains("the answer cannot be read"),
        "{error}"
    );
    assert!(error.may_have_happened());
    assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
}

#[tokio::test]
async fn limits_beyond_all_time_are_only_long() {
    let mut settings = fake(&["modern"]);
    settings.timeouts.connect = Duration::MAX;
    settings.timeouts.probe = Duration::MAX;
    settings.timeouts.list = Duration::MAX;
    settings.timeouts.idle = Duration::MAX;
    settings.timeouts.call = Duration::MAX;
    let connection = open(settings).await.unwrap();
    assert!(connection.list_tools().await.unwrap().is_complete);
    assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
}

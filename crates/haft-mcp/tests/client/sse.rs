//! Servers of the older HTTP.

use std::time::Duration;

use haft_mcp::{CallOptions, Cause, Connection, Era, HttpKind, McpError, TransportKind};
use serde_json::json;

use crate::http::settings;
use crate::kit::{LONG, call, call_text, names, object, open};
use crate::web::{Style, Web, raw};

async fn connect(web: &Web) -> Result<Connection, McpError> {
    open(settings(web, HttpKind::Sse)).await
}

#[tokio::test]
async fn a_server_of_the_older_protocol_connects_lists_and_calls() {
    for kind in [HttpKind::Sse, HttpKind::Auto] {
        let web = Web::start(Style::Sse, &["legacy", "ancient"]).await;
        let connection = open(settings(&web, kind)).await.unwrap();
        assert_eq!(
            (connection.era(), connection.transport()),
            (Era::Legacy, TransportKind::Sse)
        );
        assert_eq!(
            names(&connection.list_tools().await.unwrap())[..2],
            ["echo", "raw"]
        );
        assert_eq!(
            call_text(&connection, "echo", json!({"a": 1})).await,
            r#"{"a":1}"#
        );
        let seen = web.seen_rpc("tools/call").remove(0);
        assert_eq!(seen.path, "/messages?key=1");
        assert_eq!(seen.headers["authorization"], "Bearer hunter2-token");
        assert_eq!(
            web.seen_rpc("initialize").last().unwrap().body["params"]["protocolVersion"],
            "2024-11-05"
        );
        let mut changes = connection.changes();
        call_text(&connection, "change", json!({})).await;
        let told = tokio::time::timeout(LONG, changes.next()).await;
        assert!(told.expect("nothing was told"));
        connection.close().await;
    }
}

#[tokio::test]
async fn an_endpoint_elsewhere_is_refused() {
    let web = Web::start(Style::Sse, &["legacy", "foreign-endpoint"]).await;
    let error = connect(&web).await.unwrap_err();
    assert_eq!(
        error.cause.to_string(),
        "the server points to another origin, `http://127.0.0.2:1`, which is not followed"
    );
}

#[tokio::test]
async fn a_stream_that_does_not_say_where_to_send_is_given_up() {
    let web = Web::start(Style::Sse, &["legacy", "no-endpoint"]).await;
    let error = connect(&web).await.unwrap_err();
    assert_eq!(
        error.cause.to_string(),
        "the stream does not say where to send: no event `endpoint`"
    );
    let web = Web::start(Style::Json, &["legacy"]).await;
    web.answer_next(raw("200 OK", "content-type: text/html\r\n", "<html>"));
    let error = connect(&web).await.unwrap_err();
    assert_eq!(error.cause.to_string(), "the address gives no event stream");
}

#[tokio::test]
async fn the_end_of_the_stream_fails_what_waits_and_a_new_connection_works() {
    let web = Web::start(Style::Sse, &["legacy"]).await;
    let connection = connect(&web).await.unwrap();
    let called = connection.call_tool("silent", object(json!({})), CallOptions::default());
    let (error, ()) = tokio::join!(called, async {
        while web.seen_rpc("tools/call").is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        web.restart();
    });
    let error = error.unwrap_err();
    assert!(
        matches!(*error.cause, Cause::ConnectionLost { sent: true, .. }),
        "{error}"
    );
    assert!(connection.is_closed());
    let connection = connect(&web).await.unwrap();
    assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
}

#[tokio::test]
async fn an_event_past_the_limit_fails_its_own_call_only() {
    for id_last in [false, true] {
        let web = Web::start(Style::Sse, &["legacy"]).await;
        let mut settings = settings(&web, HttpKind::Sse);
        settings.limits.message_bytes = 1024 * 1024;
        let connection = open(settings).await.unwrap();
        let error = call(
            &connection,
            "huge",
            json!({"bytes": 3 << 20, "id_last": id_last}),
        )
        .await
        .unwrap_err();
        assert!(
            matches!(
                *error.cause,
                Cause::TooLarge {
                    bytes: 0x30_0000..,
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
    }
}

#[tokio::test]
async fn a_refused_post_fails_its_own_call_only() {
    let web = Web::start(Style::Sse, &["legacy"]).await;
    let connection = connect(&web).await.unwrap();
    web.answer_next(raw("503 Busy", "", "hunter2-token is busy"));
    let error = call(&connection, "echo", json!({})).await.unwrap_err();
    assert_eq!(
        *error.cause,
        Cause::Status {
            status: 503,
            detail: ": [redacted] is busy".into()
        }
    );
    assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
}

#[tokio::test]
async fn a_call_that_is_given_up_is_told() {
    let web = Web::start(Style::Sse, &["legacy"]).await;
    let connection = connect(&web).await.unwrap();
    let options = CallOptions {
        call_timeout: Some(Duration::from_millis(150)),
        ..CallOptions::default()
    };
    connection
        .call_tool("silent", object(json!({})), options)
        .await
        .unwrap_err();
    let told = async {
        while web.seen_rpc("notifications/cancelled").is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, told)
        .await
        .expect("the server was not told");
}

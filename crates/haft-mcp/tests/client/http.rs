//! Servers over streamable HTTP.

use std::time::Duration;

use haft_core::Cancel;
use haft_mcp::{
    CallOptions, Cause, ConnectOptions, Connection, Era, HttpKind, Label, McpError, Phase,
    ServerSettings, TransportKind, TransportSettings,
};
use serde_json::json;

use crate::kit::{LONG, call, call_text, names, object, open, open_with, text};
use crate::web::{Style, Web, raw};

pub(crate) fn settings(web: &Web, kind: HttpKind) -> ServerSettings {
    let mut settings = ServerSettings::http(Label::new("web").unwrap(), web.url());
    settings.timeouts.probe = Duration::from_secs(1);
    let TransportSettings::Http(http) = &mut settings.transport else {
        panic!()
    };
    http.kind = kind;
    http.bearer = Some("hunter2-token".into());
    http.headers.insert("X-Team".into(), "blue-team".into());
    // The protocol's own is sent in its place.
    http.headers.insert("Accept".into(), "text/nothing".into());
    settings
}

async fn connect(web: &Web) -> Result<Connection, McpError> {
    open(settings(web, HttpKind::Streamable)).await
}

#[tokio::test]
async fn both_eras_and_both_forms_of_answers_work() {
    for style in [Style::Json, Style::Events] {
        for (words, era) in [
            (&["modern"][..], Era::Modern),
            (&["legacy"], Era::Legacy),
            (&["legacy", "sessions"], Era::Legacy),
            (&["legacy", "plain-400", "no-get"], Era::Legacy),
            (&["legacy", "error-500"], Era::Legacy),
            (&["legacy", "silent-on-discover"], Era::Legacy),
        ] {
            let web = Web::start(style, words).await;
            let connection = connect(&web)
                .await
                .unwrap_or_else(|error| panic!("{style:?} {words:?}: {error}"));
            assert_eq!(
                (connection.era(), connection.transport()),
                (era, TransportKind::Http),
                "{style:?} {words:?}"
            );
            let list = connection.list_tools().await.unwrap();
            assert_eq!(names(&list)[..2], ["echo", "raw"]);
            assert_eq!(
                call_text(&connection, "echo", json!({"a": "é"})).await,
                r#"{"a":"é"}"#
            );
            let odd = json!({"content": [{"type": "hologram"}], "structuredContent": null});
            let outcome = call(&connection, "raw", json!({ "result": odd }))
                .await
                .unwrap();
            assert_eq!(*outcome.raw, odd);
            connection.close().await;
        }
    }
}

#[tokio::test]
async fn every_request_carries_what_its_era_wants_and_the_configured_headers() {
    let web = Web::start(Style::Json, &["modern"]).await;
    let connection = connect(&web).await.unwrap();
    call_text(&connection, "echo", json!({})).await;
    let seen = web.seen_rpc("tools/call").remove(0);
    for (name, value) in [
        ("authorization", "Bearer hunter2-token"),
        ("x-team", "blue-team"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(
            seen.headers.get(name).map(String::as_str),
            Some(value),
            "{name}"
        );
    }
    let web = Web::start(Style::Json, &["legacy", "sessions"]).await;
    let connection = connect(&web).await.unwrap();
    call_text(&connection, "echo", json!({})).await;
    let seen = web.seen_rpc("tools/call").remove(0);
    assert_eq!(seen.headers["mcp-session-id"], "session-0");
    assert_eq!(seen.headers["mcp-protocol-version"], "2025-11-25");
    assert_eq!(seen.headers.get("mcp-method"), None);
}

#[tokio::test]
async fn a_list_with_malformed_tools_is_read_and_arguments_are_still_mirrored() {
    for style in [Style::Json, Style::Events] {
        let web = Web::start(style, &["modern", "mirror"]).await;
        let connection = connect(&web).await.unwrap();
        let list = connection.list_tools().await.unwrap();
        assert_eq!(names(&list), ["mirrored", "echo"]);
        assert_eq!(
            list.diagnostics[0].to_string(),
            "tool `mirrored`: `annotations.readOnlyHint` is neither true nor false and is ignored"
        );
        assert_eq!(
            list.diagnostics[1].to_string(),
            "tool `wrong` is left out: `x-mcp-header` \"not a token\": it is no name of a header"
        );
        assert_eq!(
            call_text(&connection, "mirrored", json!({"region": "eu"})).await,
            "mirrored"
        );
        assert_eq!(
            web.seen_rpc("tools/call")[0].headers["mcp-param-region"],
            "eu"
        );
    }
}

#[tokio::test]
async fn a_header_mismatch_is_cured_by_reading_the_list_again_once() {
    let web = Web::start(Style::Json, &["modern", "mirror"]).await;
    let connection = connect(&web).await.unwrap();
    // Never listed, so that nothing is mirrored at first.
    assert_eq!(
        call_text(&connection, "mirrored", json!({"region": "eu"})).await,
        "mirrored"
    );
    assert_eq!(web.seen_rpc("tools/list").len(), 1);
    assert_eq!(web.seen_rpc("tools/call").len(), 2);
    let error = call(&connection, "refuse", json!({"code": -32020}))
        .await
        .unwrap_err();
    assert!(
        matches!(*error.cause, Cause::Protocol { code: -32020, .. }),
        "{error}"
    );
    assert_eq!(web.seen_rpc("tools/list").len(), 2);
}

#[tokio::test]
async fn bodies_and_events_past_the_limit_fail_their_own_call_only() {
    for style in [Style::Json, Style::Events] {
        for id_last in [false, true] {
            let web = Web::start(style, &["modern"]).await;
            let mut settings = settings(&web, HttpKind::Streamable);
            settings.limits.message_bytes = 1024 * 1024;
            let connection = open(settings).await.unwrap();
            let huge = json!({"bytes": 3 << 20, "id_last": id_last});
            let error = call(&connection, "huge", huge).await.unwrap_err();
            assert!(
                matches!(
                    *error.cause,
                    Cause::TooLarge {
                        bytes: 0x10_0000..,
                        limit: 0x10_0000
                    }
                ),
                "{style:?}: {error}"
            );
            assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
        }
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_ends_its_stream_in_the_modern_era_and_is_told_in_the_older() {
    for style in [Style::Json, Style::Events] {
        for era in ["modern", "legacy"] {
            let web = Web::start(style, &[era, "no-get"]).await;
            let connection = connect(&web).await.unwrap();
            let before = web.hang_ups();
            let cancel = Cancel::new();
            let options = CallOptions {
                cancel: cancel.clone(),
                ..CallOptions::default()
            };
            let called = connection.call_tool("silent", object(json!({})), options);
            let (error, ()) = tokio::join!(called, async {
                tokio::time::sleep(Duration::from_millis(150)).await;
                cancel.cancel();
            });
            assert_eq!(*error.unwrap_err().cause, Cause::Cancelled);
            let told = async {
                loop {
                    let is_told = if era == "modern" {
                        web.hang_ups() > before
                    } else {
                        !web.seen_rpc("notifications/cancelled").is_empty()
                    };
                    if is_told {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(LONG, told)
                .await
                .unwrap_or_else(|_| panic!("{style:?} {era}: the server was not told"));
            if era == "modern" {
                assert!(web.seen_rpc("notifications/cancelled").is_empty());
            }
            assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
        }
    }
}

#[tokio::test]
async fn progress_is_heard_over_events() {
    let web = Web::start(Style::Events, &["modern"]).await;
    let connection = connect(&web).await.unwrap();
    let mut heard = Vec::new();
    let mut on_progress = |progress: haft_core::ToolProgress| heard.push(progress.progress);
    let options = CallOptions {
        on_progress: Some(&mut on_progress),
        idle_timeout: Some(Duration::from_secs(1)),
        ..CallOptions::default()
    };
    let arguments = object(json!({"count": 7, "every_ms": 200}));
    let outcome = connection
        .call_tool("progress", arguments, options)
        .await
        .unwrap();
    assert_eq!(text(&outcome), "done");
    assert_eq!(heard.last(), Some(&Some(7.0)));
}

#[tokio::test]
async fn an_expired_session_is_begun_anew_and_the_call_succeeds() {
    let web = Web::start(Style::Json, &["legacy", "sessions"]).await;
    let connection = connect(&web).await.unwrap();
    call_text(&connection, "echo", json!({})).await;
    web.restart();
    assert_eq!(
        call_text(&connection, "echo", json!({"again": 1})).await,
        r#"{"again":1}"#
    );
    assert_eq!(web.seen_rpc("initialize").len(), 2);
}

#[tokio::test]
async fn changes_are_told_over_streams_of_both_eras() {
    let change = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let web = Web::start(Style::Json, &["legacy", "sessions"]).await;
    let connection = connect(&web).await.unwrap();
    let mut changes = connection.changes();
    let told = async {
        loop {
            web.tell(&change);
            if let Ok(told) = tokio::time::timeout(Duration::from_millis(50), changes.next()).await
            {
                return told;
            }
        }
    };
    assert!(
        tokio::time::timeout(LONG, told)
            .await
            .expect("nothing was told")
    );
    let web = Web::start(Style::Events, &["modern"]).await;
    let _connection = connect(&web).await.unwrap();
    let subscribed = async {
        while web.seen_rpc("subscriptions/listen").is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, subscribed)
        .await
        .expect("nobody listens");
}

#[tokio::test]
async fn redirects_stay_within_the_origin_and_take_nothing_elsewhere() {
    let elsewhere = Web::start(Style::Json, &["modern"]).await;
    for status in ["307 Temporary", "308 Permanent", "302 Found", "301 Moved"] {
        let web = Web::start(Style::Json, &["modern"]).await;
        let away = format!("location: http://{}/mcp\r\n", elsewhere.address);
        for _ in 0..3 {
            web.answer_next(raw(status, &away, ""));
        }
        let error = connect(&web).await.unwrap_err();
        assert!(
            matches!(*error.cause, Cause::Status { .. }),
            "{status}: {error}"
        );
    }
    assert!(elsewhere.seen().is_empty(), "something was sent elsewhere");

    let web = Web::start(Style::Json, &["modern"]).await;
    web.answer_next(raw("307 Temporary", "location: /other\r\n", ""));
    let connection = connect(&web).await.unwrap();
    assert_eq!(connection.era(), Era::Modern);
    assert_eq!(web.seen()[1].path, "/other");
    assert_eq!(
        web.seen()[1].headers["authorization"],
        "Bearer hunter2-token"
    );

    let web = Web::start(Style::Json, &["modern"]).await;
    for _ in 0..20 {
        web.answer_next(raw("307 Temporary", "location: /round\r\n", ""));
    }
    assert!(connect(&web).await.is_err());
}

#[tokio::test]
async fn refusals_are_told_with_their_status_and_without_secrets() {
    for (answer, expected) in [
        (
            raw("401 No", "www-authenticate: Bearer realm=\"x\"\r\n", ""),
            "the server asks for authorization (HTTP status 401)",
        ),
        (
            raw("401 No", "", ""),
            "the server asks for authorization (HTTP status 401)",
        ),
        (
            raw("403 No", "", "hunter2-token"),
            "the server asks for authorization (HTTP status 403)",
        ),
        (
            raw("429 Slow down", "", "too many, hunter2-token"),
            "HTTP status 429: too many, [redacted]",
        ),
    ] {
        let web = Web::start(Style::Json, &["modern"]).await;
        // However often it is tried.
        for _ in 0..5 {
            web.answer_next(answer.clone());
        }
        let error = connect(&web).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(
            !format!("{error:?}{error}").contains("hunter2"),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn what_is_no_server_is_told_as_such() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    let url = reqwest::Url::parse(&format!("http://{nobody}/mcp?key=hunter2")).unwrap();
    let error = open(ServerSettings::http(Label::new("web").unwrap(), url))
        .await
        .unwrap_err();
    assert!(matches!(*error.cause, Cause::Unreachable(_)), "{error}");
    assert!(!error.to_string().contains("hunter2"));
    assert_eq!(error.phase, Phase::Probe);

    for body in [
        "<html>hello</html>",
        "{}",
        "[]",
        "",
        "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}",
    ] {
        let web = Web::start(Style::Json, &["modern"]).await;
        for _ in 0..5 {
            web.answer_next(raw(
                "200 OK",
                "content-type: application/json\r\nconnection: close\r\n",
                body,
            ));
        }
        let error = connect(&web).await.unwrap_err();
        assert!(
            matches!(*error.cause, Cause::Unexpected(_)),
            "{body}: {error}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_fails_its_call_and_may_have_happened() {
    for broken in [
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"jsonrpc\"",
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 1000\r\n\r\ndata: {\"jsonrpc\"",
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ncontent-length: 11\r\n\r\ndata: {}\n\n\n",
    ] {
        let web = Web::start(Style::Json, &["modern", "no-get"]).await;
        let connection = connect(&web).await.unwrap();
        // The subscription comes first.
        while web.seen_rpc("subscriptions/listen").is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        web.answer_next(broken);
        let error = call(&connection, "echo", json!({})).await.unwrap_err();
        assert!(
            matches!(*error.cause, Cause::ConnectionLost { sent: true, .. }),
            "{error}"
        );
        assert!(error.may_have_happened());
        assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
    }
}

#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = reqwest::Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    let mut settings = ServerSettings::http(Label::new("web").unwrap(), url);
    settings.timeouts.connect = Duration::from_millis(600);
    settings.timeouts.probe = Duration::from_millis(200);
    let error = open(settings).await.unwrap_err();
    assert!(
        matches!(
            *error.cause,
            Cause::TimedOut {
                setting: "connect_timeout",
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(error.phase, Phase::Initialize);
}

#[tokio::test]
async fn a_silent_call_over_http_ends_with_its_limit() {
    let web = Web::start(Style::Json, &["modern"]).await;
    let connection = connect(&web).await.unwrap();
    let options = CallOptions {
        call_timeout: Some(Duration::from_millis(200)),
        ..CallOptions::default()
    };
    let error = connection
        .call_tool("silent", object(json!({})), options)
        .await
        .unwrap_err();
    assert!(matches!(*error.cause, Cause::TimedOut { .. }), "{error}");
}

#[tokio::test]
async fn a_pinned_host_is_not_looked_up() {
    let web = Web::start(Style::Json, &["modern"]).await;
    let mut settings = settings(&web, HttpKind::Auto);
    let TransportSettings::Http(http) = &mut settings.transport else {
        panic!()
    };
    http.url.set_host(Some("mcp.invalid")).unwrap();
    let mut options = ConnectOptions::default();
    assert!(open_with(settings.clone(), &options).await.is_err());
    options.http.pinned = Some(vec![web.address]);
    let connection = open_with(settings, &options).await.unwrap();
    assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
    let host = format!("mcp.invalid:{}", web.address.port());
    assert_eq!(web.seen()[0].headers["host"], host);
}

#[tokio::test]
async fn what_neither_protocol_understands_is_told_in_the_words_of_the_newer() {
    let web = Web::start(Style::Json, &["modern"]).await;
    for _ in 0..10 {
        web.answer_next(raw("404 Not Found", "", "no such page"));
    }
    let error = open(settings(&web, HttpKind::Auto)).await.unwrap_err();
    assert_eq!(error.transport, TransportKind::Http);
    assert!(
        error.to_string().ends_with("HTTP status 404: no such page"),
        "{error}"
    );
}

//! Servers that die, and come back.

use std::time::{Duration, Instant};

use haft_mcp::State;
use serde_json::json;

use crate::kit::{Place, call, tools, until};

#[tokio::test]
async fn after_a_server_died_the_next_call_starts_it_again() {
    for era in ["modern", "legacy"] {
        let place = Place::new();
        let pool = place.pool();
        let server = pool.add(place.fake("files", &[era])).unwrap();
        let error = call(&server, "die", json!({})).await.unwrap_err();
        assert!(error.may_have_happened(), "{error}");
        assert!(error.to_string().contains("may have happened"), "{error}");
        let answer = call(&server, "echo", json!({"era": era})).await.unwrap();
        assert!(answer.contains(era));
        assert_eq!(place.starts(), 2, "{era}");
        pool.close().await;
    }
}

#[tokio::test]
async fn a_server_killed_between_calls_is_not_noticed_by_the_next_call() {
    let place = Place::new();
    let pool = place.pool();
    let server = pool.add(place.fake("files", &["modern"])).unwrap();
    call(&server, "echo", json!({})).await.unwrap();
    let starts = std::fs::read_to_string(place.file("starts")).unwrap();
    let killed = std::process::Command::new("kill")
        .args(["-9", starts.trim()])
        .status()
        .unwrap();
    assert!(killed.success());
    until("it is noticed", || server.connected().is_none()).await;
    call(&server, "echo", json!({})).await.unwrap();
    pool.close().await;
}

#[tokio::test]
async fn a_call_that_may_have_happened_is_repeated_only_where_that_does_no_harm() {
    let deadly = |hints: serde_json::Value| json!([{"name": "die", "inputSchema": {"type": "object"}, "annotations": hints}]);
    let cases = [
        (true, json!({"readOnlyHint": true}), 2),
        (true, json!({"idempotentHint": true}), 2),
        (true, json!({}), 1),
        (false, json!({"readOnlyHint": true}), 1),
    ];
    for (trusted, hints, starts) in cases {
        let place = Place::new();
        let pool = place.pool();
        let mut settings = place.listing("files", &deadly(hints.clone()));
        settings.trusted = trusted;
        let server = pool.add(settings).unwrap();
        tools(&server).await;
        call(&server, "die", json!({})).await.unwrap_err();
        assert_eq!(place.starts(), starts, "trusted: {trusted}, {hints}");
        pool.close().await;
    }
}

#[tokio::test]
async fn a_server_that_cannot_start_is_not_started_for_every_call() {
    let place = Place::new();
    let pool = place.pool();
    let server = pool.add(place.fake("files", &["exits-at-once"])).unwrap();
    for _ in 0..3 {
        let error = call(&server, "echo", json!({})).await.unwrap_err();
        assert!(error.to_string().contains("no license found"), "{error}");
    }
    let tried = place.starts();
    let started = Instant::now();
    for _ in 0..20 {
        call(&server, "echo", json!({})).await.unwrap_err();
    }
    // Each start may be tried in more than one way, but never once for each call.
    assert!(place.starts() <= tried + 6, "{} starts", place.starts());
    assert!(started.elapsed() < Duration::from_secs(15));
    pool.close().await;
}

#[tokio::test]
async fn a_server_that_comes_back_is_used_again() {
    let place = Place::new();
    let gone = place.file("gone");
    std::fs::write(&gone, "").unwrap();
    let missing = format!("missing={}", gone.display());
    let pool = place.pool();
    let server = pool
        .add(place.fake("files", &["modern", &missing]))
        .unwrap();
    call(&server, "echo", json!({})).await.unwrap_err();
    std::fs::remove_file(&gone).unwrap();
    call(&server, "echo", json!({})).await.unwrap();
    assert!(matches!(server.state(), State::Connected { .. }));
    pool.close().await;
}

#[tokio::test]
async fn a_missing_program_is_told_at_once_and_not_tried_again() {
    let place = Place::new();
    let pool = place.pool();
    let label = haft_mcp::Label::new("nope").unwrap();
    let settings = haft_mcp::ServerSettings::stdio(label, "no-such-program-anywhere");
    let server = pool.add(settings).unwrap();
    let started = Instant::now();
    for _ in 0..5 {
        let error = call(&server, "echo", json!({})).await.unwrap_err();
        assert!(
            error.to_string().contains("no-such-program-anywhere"),
            "{error}"
        );
    }
    assert!(started.elapsed() < Duration::from_secs(5));
    let State::Failed { retry_in, .. } = server.state() else {
        panic!("{:?}", server.state());
    };
    assert!(retry_in > Duration::from_secs(30));
    server.forgive();
    assert!(!matches!(server.state(), State::Failed { .. }));
}

#[tokio::test]
async fn a_server_that_nobody_uses_is_stopped_and_started_again_when_needed() {
    let place = Place::new();
    let pool = place.pool();
    let mut settings = place.fake("files", &["modern"]);
    settings.idle_shutdown = Some(Duration::from_millis(300));
    let server = pool.add(settings).unwrap();
    // A long call is a use.
    call(&server, "sleep", json!({"ms": 700})).await.unwrap();
    until("it is stopped", || server.connected().is_none()).await;
    assert_eq!(server.state(), State::Configured);
    call(&server, "echo", json!({})).await.unwrap();
    assert_eq!(place.starts(), 2);
    pool.close().await;
}

#[tokio::test]
async fn many_calls_at_once_open_one_connection() {
    let place = Place::new();
    let pool = place.pool();
    let server = pool.add(place.fake("files", &["modern"])).unwrap();
    let calls = (0..30).map(|number| {
        let server = &server;
        async move {
            let answer = call(server, "echo", json!({"number": number}))
                .await
                .unwrap();
            assert_eq!(answer, json!({"number": number}).to_string());
        }
    });
    futures_util::future::join_all(calls).await;
    assert_eq!(place.starts(), 1);
    pool.close().await;
}

#[tokio::test]
async fn the_pool_stops_all_servers_within_five_seconds_even_deaf_ones() {
    let place = Place::new();
    let pool = place.pool();
    for number in 0..6 {
        let server = pool
            .add(place.fake(&format!("deaf{number}"), &["modern", "deaf"]))
            .unwrap();
        call(&server, "echo", json!({})).await.unwrap();
    }
    let started = Instant::now();
    pool.close().await;
    assert!(started.elapsed() < Duration::from_millis(5500));
    let starts = std::fs::read_to_string(place.file("starts")).unwrap();
    for pid in starts.lines() {
        let folder = format!("/proc/{pid}");
        until("the process is gone", || {
            !std::path::Path::new(&folder).exists()
        })
        .await;
    }
}

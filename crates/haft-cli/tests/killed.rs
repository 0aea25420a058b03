//! What was acknowledged is there after the server was killed.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use support::{Running, probe, request};

fn address(lines: &[String]) -> &str {
    lines[0].strip_prefix("listening on http://").unwrap()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The response that a stream ends with.
fn streamed(text: &str) -> Value {
    let last = text
        .split("\n\n")
        .filter(|frame| frame.contains("response.completed"));
    let data = last.last().unwrap().split_once("data: ").unwrap().1;
    parsed(data)["response"].clone()
}

#[test]
fn stored_responses_and_conversations_survive_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let (server, lines) = Running::start(folder.path());
    let at = address(&lines).to_owned();
    let create = |body: Value| request(&at, "POST", "/responses", &body.to_string()).1;

    let plain = parsed(&create(json!({"input": "plain"})));
    let stream = streamed(&create(json!({"input": "streamed", "stream": true})));
    let tools = json!([{"type": "haft:clock"}]);
    let looped = create(json!({
        "input": "What time is it?", "tools": tools, "stream": true, "tool_choice": "required",
    }));
    let looped = streamed(&looped);
    assert_eq!(looped["output"][0]["type"], "haft:clock");
    let (_, conversation) = request(&at, "POST", "/conversations", "{}");
    let conversation = parsed(&conversation)["id"].clone();
    let talked = parsed(&create(
        json!({"input": "remember me", "conversation": conversation}),
    ));
    assert_eq!(talked["status"], "completed");
    server.kill();

    let (_server, lines) = Running::start(folder.path());
    let at = address(&lines);
    for response in [&plain, &stream, &looped, &talked] {
        let id = response["id"].as_str().unwrap();
        let (status, again) = request(at, "GET", &format!("/responses/{id}"), "");
        assert_eq!((status, &parsed(&again)), (200, response));
        let next = json!({"input": "and then?", "previous_response_id": id}).to_string();
        let (status, next) = request(at, "POST", "/responses", &next);
        assert_eq!(status, 200, "{next}");
    }
    let conversation = conversation.as_str().unwrap();
    let path = format!("/conversations/{conversation}/items");
    let (_, items) = request(at, "GET", &path, "");
    assert_eq!(parsed(&items)["data"].as_array().unwrap().len(), 2);
}

#[test]
fn a_background_response_goes_on_after_kill_9_and_after_a_signal() {
    for is_killed in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let config = |adapter: &str| {
            let text =
                format!("[server]\nstop_wait = \"200ms\"\n[[model]]\nname = \"slow\"\n{adapter}\n");
            std::fs::write(folder.path().join("haft.toml"), text).unwrap();
        };
        let serve = || {
            let arguments = ["serve", "--listen", "127.0.0.1:0"];
            Running::start_with(support::haft(folder.path(), &arguments))
        };
        // A provider that takes requests and never answers.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let silent = silent.local_addr().unwrap();
        config(&format!(
            "adapter = \"openai-chat\"\nbase_url = \"http://{silent}/v1\""
        ));
        let (mut server, lines) = serve();
        let body = json!({"input": "hi", "background": true}).to_string();
        let (status, queued) = request(address(&lines), "POST", "/responses", &body);
        let queued = parsed(&queued);
        assert_eq!((status, &queued["status"]), (200, &json!("queued")));
        let path = format!("/responses/{}", queued["id"].as_str().unwrap());
        let (_, polled) = request(address(&lines), "GET", &path, "");
        let status = parsed(&polled)["status"].clone();
        assert!(["queued", "in_progress"].contains(&status.as_str().unwrap()));
        if is_killed {
            server.kill();
        } else {
            server.signal("TERM");
            assert!(server.0.wait().unwrap().success());
        }

        config("adapter = \"offline\"");
        let (_server, lines) = serve();
        let done = (0..500).find_map(|_| {
            let (_, polled) = request(address(&lines), "GET", &path, "");
            let polled = parsed(&polled);
            let is_over = !matches!(polled["status"].as_str(), Some("queued" | "in_progress"));
            if !is_over {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            is_over.then_some(polled)
        });
        let done = done.expect("it does not come to its end");
        assert_eq!(done["status"], "completed", "{done:#}");
        assert_eq!(done["output"][0]["type"], "message");
    }
}

#[test]
fn a_second_signal_stops_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap();
    let config = format!(
        "[server]\nstop_wait = \"10m\"\n[[model]]\nname = \"slow\"\n\
         adapter = \"openai-chat\"\nbase_url = \"http://{silent}/v1\"\n"
    );
    std::fs::write(folder.path().join("haft.toml"), config).unwrap();
    let arguments = ["serve", "--listen", "127.0.0.1:0"];
    let (mut server, lines) = Running::start_with(support::haft(folder.path(), &arguments));
    let at = address(&lines).to_owned();
    let waiting = std::thread::spawn({
        let at = at.clone();
        move || request(&at, "POST", "/responses", r#"{"input":"hi"}"#)
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
    server.signal("TERM");
    // It takes no more connections, and waits for the one that it has.
    while std::net::TcpStream::connect(&at).is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(server.0.try_wait().unwrap().is_none(), "it did not wait");
    server.signal("TERM");
    assert_eq!(server.0.wait().unwrap().code(), Some(143));
    waiting.join().unwrap();
}

#[test]
fn a_signal_turns_readiness_off_and_requests_are_served_until_the_wait_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let config = "[server]\ndrain_wait = \"6s\"\n";
    std::fs::write(folder.path().join("haft.toml"), config).unwrap();
    let (mut server, lines) = Running::start(folder.path());
    let at = address(&lines);
    assert_eq!(probe(at, "/readyz").0, 200);
    server.signal("TERM");
    while probe(at, "/readyz").0 == 200 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let (status, ready) = request(at, "POST", "/responses", r#"{"input":"hi"}"#);
    assert_eq!(status, 200, "{ready}");
    assert_eq!(parsed(&ready)["status"], "completed");
    let (status, ready) = probe(at, "/readyz");
    assert_eq!(status, 503, "{ready}");
    assert_eq!(parsed(&ready)["parts"]["server"], "it is being stopped");
    assert_eq!(probe(at, "/healthz").0, 200);
    assert!(server.0.try_wait().unwrap().is_none(), "it did not wait");
    assert!(server.0.wait().unwrap().success());
    assert!(std::net::TcpStream::connect(at).is_err());
}

#[test]
fn streams_that_a_stopped_server_cuts_short_are_told_so_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let steps =
        [json!({"text": "tick ".repeat(400), "pieces": 5, "delay_ms": 100, "repeat": "forever"})];
    support::scripted(folder.path(), "[server]\nstop_wait = \"300ms\"\n", &steps);
    let serve = || {
        let arguments = ["serve", "--listen", "127.0.0.1:0"];
        Running::start_with(support::haft(folder.path(), &arguments))
    };
    let (mut server, lines) = serve();
    let at = address(&lines).to_owned();
    let body = json!({"input": "hi", "stream": true}).to_string();
    let streams: Vec<_> = (0..5)
        .map(|_| {
            let (at, body) = (at.clone(), body.clone());
            std::thread::spawn(move || request(&at, "POST", "/responses", &body).1)
        })
        .collect();
    std::thread::sleep(std::time::Duration::from_millis(700));
    server.signal("TERM");
    assert!(server.0.wait().unwrap().success());
    let (_server, lines) = serve();
    for stream in streams {
        let events = stream.join().unwrap();
        assert!(events.contains("event: response.failed"), "{events}");
        assert!(events.trim_end().ends_with("[DONE]"), "{events}");
        let id = events.split("\"id\":\"").nth(1).unwrap();
        let path = format!("/responses/{}", id.split('"').next().unwrap());
        let (status, kept) = request(address(&lines), "GET", &path, "");
        assert_eq!((status, &parsed(&kept)["status"]), (200, &json!("failed")));
    }
}

#[test]
fn keys_that_are_no_file_hold_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let added = support::haft(folder.path(), &["keys", "add", "ci"])
        .output()
        .unwrap();
    assert!(added.status.success());
    let (mut server, lines) = Running::start(folder.path());
    let keys = folder.path().join("haft-data/keys.json");
    std::fs::remove_file(&keys).unwrap();
    let made = std::process::Command::new("mkfifo")
        .args(["-m", "600"])
        .arg(&keys)
        .status();
    assert!(made.unwrap().success());
    std::thread::sleep(std::time::Duration::from_millis(1200));
    let key = String::from_utf8(added.stdout).unwrap();
    let header = format!("authorization: Bearer {}\r\n", key.trim());
    let (status, answer) = support::request_with(address(&lines), "GET", "/models", &header, "");
    assert_eq!(status, 500, "{answer}");
    server.signal("TERM");
    assert!(server.0.wait().unwrap().success());
}

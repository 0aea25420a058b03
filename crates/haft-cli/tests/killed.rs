//! What was acknowledged is there after the server was killed.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use support::{Running, request};

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
fn a_background_response_of_a_killed_server_says_what_became_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let config =
        "[[model]]\nname = \"slow\"\nadapter = \"openai-chat\"\nbase_url = \"http://ADDRESS/v1\"\n";
    // A provider that takes requests and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let config = config.replace("ADDRESS", &silent.local_addr().unwrap().to_string());
    std::fs::write(folder.path().join("haft.toml"), config).unwrap();
    let serve = || {
        let arguments = ["serve", "--listen", "127.0.0.1:0"];
        Running::start_with(support::haft(folder.path(), &arguments))
    };
    let (server, lines) = serve();
    let body = json!({"input": "hi", "background": true}).to_string();
    let (status, queued) = request(address(&lines), "POST", "/responses", &body);
    assert_eq!(
        (status, &parsed(&queued)["status"]),
        (200, &json!("queued"))
    );
    let path = format!("/responses/{}", parsed(&queued)["id"].as_str().unwrap());
    let (_, polled) = request(address(&lines), "GET", &path, "");
    assert!(["queued", "in_progress"].contains(&parsed(&polled)["status"].as_str().unwrap()));
    server.kill();

    let (_server, lines) = serve();
    let (_, polled) = request(address(&lines), "GET", &path, "");
    let polled = parsed(&polled);
    assert_eq!(polled["status"], "failed");
    let told = polled["error"]["message"].as_str().unwrap();
    assert!(told.contains("stopped while"), "{told}");
}

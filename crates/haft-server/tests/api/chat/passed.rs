//! In front of a server that speaks Chat Completions: everything passes as it is.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use haft_models::testing::{Chunks, Fault, ScriptedServer, call, fault, say};
use haft_server::{ApiKey, ModelEntry, ServerOptions};
use serde_json::{Value, json};

use super::backend::RawBackend;
use super::{PATH, asked, complete, in_front_of, send, serve_chat, stream, text_of};
use crate::support::Setup;

/// Odd but legal: numbers, escapes, spaces and members that nobody knows.
const ODD: &str = r#"{ "model":"public", "messages":[{"role":"user","content":"caf\u00e9 \/"}],
  "temperature" : 1.0e0, "seed":123456789012345678901234567890, "top_k":0.1000, "x":{ }, "n":2 }"#;

#[tokio::test]
async fn the_body_arrives_byte_for_byte_but_for_the_model() {
    let backend = ScriptedServer::start([say("hi"), say("hi")]).await.unwrap();
    let served = in_front_of(&backend).await;
    assert_eq!(send(&served, ODD).await.status(), 200);
    let streamed = ODD.replace("\"n\":2", "\"stream\":true");
    assert_eq!(send(&served, &streamed).await.status(), 200);
    let received = backend.received();
    for (received, sent) in received.iter().zip([ODD, &streamed]) {
        let expected = sent.replace("\"public\"", "\"inner\"");
        assert_eq!(String::from_utf8_lossy(&received.raw), expected);
    }
    assert_eq!(received[0].header("accept"), Some("application/json"));
    assert_eq!(received[1].header("accept"), Some("text/event-stream"));
    backend.assert_finished();
}

#[tokio::test]
async fn a_body_without_model_goes_to_the_default() {
    let backend = ScriptedServer::start([say("hi")]).await.unwrap();
    let served = in_front_of(&backend).await;
    let body = r#"{"messages":[{"role":"user","content":"hi"}]}"#;
    assert_eq!(send(&served, body).await.status(), 200);
    let raw = String::from_utf8_lossy(&backend.received()[0].raw).into_owned();
    assert_eq!(raw, body.replacen('{', "{\"model\":\"inner\",", 1));
}

#[tokio::test]
async fn the_answer_comes_back_as_it_is_and_with_no_headers_but_its_own() {
    let backend = RawBackend::start().await;
    let served = serve_chat(&backend.base_url).await;
    let body = "{ \"odd\" : 1.0e0,\n \"choices\":[] }";
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\r\n\
        x-request-id: theirs\r\nset-cookie: a=b\r\nserver: secret\r\nopenai-organization: org\r\n\
        content-length: 32\r\nconnection: close\r\n\r\n{ \"odd\" : 1.0e0,\n \"choices\":[] }";
    backend.say.send(answer).unwrap();
    let request = served.request("POST", PATH);
    let request = request
        .header("content-type", "application/json; charset=utf-8")
        .header("x-request-id", "mine")
        .header("authorization", "Bearer sk-of-the-client")
        .header("cookie", "c=d");
    let response = request.body(asked("hi").to_string()).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let headers = response.headers();
    let mut names: Vec<_> = headers
        .keys()
        .map(reqwest::header::HeaderName::as_str)
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["content-length", "content-type", "date", "x-request-id"]
    );
    assert_eq!(headers["content-type"], "application/json; charset=utf-8");
    assert_eq!(headers["x-request-id"], "mine");
    assert_eq!(response.text().await.unwrap(), body);
    let request = backend.request.await.unwrap().to_lowercase();
    assert!(
        request.contains("authorization: bearer sk-backend-secret\r\n"),
        "{request}"
    );
    assert!(
        !request.contains("sk-of-the-client") && !request.contains("cookie"),
        "{request}"
    );
}

#[tokio::test]
async fn a_stream_comes_back_byte_for_byte_as_it_arrives() {
    let backend = RawBackend::start().await;
    let served = serve_chat(&backend.base_url).await;
    let mut body = asked("hi");
    body["stream"] = true.into();
    backend.say.send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
    backend.say.send("9\r\ndata: {\"a\r\n").unwrap();
    let response = send(&served, &body.to_string()).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut bytes = response.bytes_stream();
    // Half a frame is there before the backend has said the other half.
    assert_eq!(bytes.next().await.unwrap().unwrap(), "data: {\"a");
    backend.say.send("b\r\n\":1}\r\n\r\n: x\r\n").unwrap();
    backend.say.send("0\r\n\r\n").unwrap();
    let mut rest = Vec::new();
    while let Some(chunk) = bytes.next().await {
        rest.extend_from_slice(&chunk.unwrap());
    }
    assert_eq!(String::from_utf8(rest).unwrap(), "\":1}\r\n\r\n: x");
}

#[tokio::test]
async fn tool_calls_go_round() {
    let tools = json!([{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]);
    let script = [
        call("look", json!({"at": 1})),
        say("a cat").chunks(Chunks::Each(7)),
    ];
    let backend = ScriptedServer::start(script).await.unwrap();
    let served = in_front_of(&backend).await;
    let mut body = asked("What is there?");
    body["tools"] = tools;
    let answer = complete(&served, body.clone()).await.ok();
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
    let message = answer["choices"][0]["message"].clone();
    let id = message["tool_calls"][0]["id"].clone();
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(message);
    messages.push(json!({"role": "tool", "tool_call_id": id, "content": "cat"}));
    let chunks = stream(&served, body).await;
    assert_eq!(text_of(&chunks), "a cat");
    backend.assert_finished();
}

#[tokio::test]
async fn refusals_keep_status_body_and_wait_but_lose_our_key() {
    let refusal =
        json!({"error": {"message": "no sk-backend-secret here", "type": "odd", "code": null}});
    let step = || {
        fault(Fault::Status {
            code: 429,
            body: Some(refusal.clone()),
            headers: BTreeMap::from([("retry-after".into(), "7".into())]),
        })
    };
    let backend = ScriptedServer::start([step(), step(), fault(Fault::Html(502))])
        .await
        .unwrap();
    let served = in_front_of(&backend).await;
    for is_streamed in [false, true] {
        let mut body = asked("hi");
        body["stream"] = is_streamed.into();
        let answer = complete(&served, body).await;
        assert_eq!(
            (answer.status, &answer.headers["retry-after"]),
            (429, &"7".parse().unwrap())
        );
        assert_eq!(answer.headers["content-type"], "application/json");
        let error = &answer.body["error"];
        assert_eq!(
            (error["type"].as_str(), &error["code"]),
            (Some("odd"), &Value::Null)
        );
        let message = error["message"].as_str().unwrap();
        assert!(
            message.starts_with("no ") && !message.contains("sk-backend"),
            "{message}"
        );
    }
    let answer = complete(&served, asked("hi")).await;
    assert_eq!(answer.status, 502);
    assert_eq!(answer.headers["content-type"], "text/html; charset=utf-8");
    assert!(answer.body.as_str().unwrap().starts_with("<!DOCTYPE html>"));
}

#[tokio::test]
async fn a_backend_that_cannot_be_reached_or_breaks_off_is_told_in_our_words() {
    let script = [
        fault(Fault::Closed),
        say("a long answer").fault(Fault::CutAfterBytes(10)),
    ];
    let backend = ScriptedServer::start(script).await.unwrap();
    let served = in_front_of(&backend).await;
    for _ in 0..2 {
        let answer = complete(&served, asked("hi")).await;
        assert_eq!(
            answer.error(),
            (502, "backend_unreachable", None),
            "{}",
            answer.body
        );
        assert_eq!(answer.body["error"]["type"], "model_error");
    }
    backend.stop().await;
    let mut body = asked("hi");
    body["stream"] = true.into();
    let answer = complete(&served, body).await;
    assert_eq!(answer.error(), (502, "backend_unreachable", None));
    assert_eq!(answer.headers["content-type"], "application/json");
}

#[tokio::test]
async fn a_backend_that_is_too_slow_is_a_timeout() {
    let backend = ScriptedServer::start([fault(Fault::Hang)]).await.unwrap();
    let model = haft_models::OpenAiChat::new("inner").base_url(&backend.base_url());
    let timeouts = haft_models::http::Timeouts {
        header: std::time::Duration::from_millis(50),
        ..haft_models::http::Timeouts::default()
    };
    let served = Setup::of(model.timeouts(timeouts)).serve().await;
    let answer = complete(&served, asked("hi")).await;
    assert_eq!(answer.error(), (504, "backend_timeout", None));
}

#[tokio::test]
async fn a_stream_that_breaks_between_events_says_so_and_inside_one_it_breaks_too() {
    let script = [
        say("one two").fault(Fault::CutAfterEvents(2)),
        say("one two").fault(Fault::CutAfterBytes(30)),
    ];
    let backend = ScriptedServer::start(script).await.unwrap();
    let served = in_front_of(&backend).await;
    let mut body = asked("hi");
    body["stream"] = true.into();
    let text = send(&served, &body.to_string()).await.text().await.unwrap();
    let (chunks, _) = super::frames(&text);
    assert_eq!(chunks.len(), 3, "{text}");
    assert_eq!(chunks[2]["error"]["code"], "backend_unreachable");
    let broken = send(&served, &body.to_string()).await.bytes().await;
    assert!(broken.is_err(), "{broken:?}");
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_call_to_the_backend() {
    for is_streamed in [false, true] {
        let mut backend = RawBackend::start().await;
        let served = serve_chat(&backend.base_url).await;
        let mut body = asked("hi");
        body["stream"] = is_streamed.into();
        let body = body.to_string();
        let request = send(&served, &body);
        if is_streamed {
            backend.say.send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
            let response = request.await;
            drop(response);
        } else {
            tokio::select! {
                _ = request => panic!("nobody answered"),
                _ = &mut backend.request => {}
            }
        }
        backend.wait_until_left().await;
    }
}

#[tokio::test]
async fn models_keys_types_and_sizes_are_checked_before_anything_is_sent() {
    let backend = ScriptedServer::start([say("hi").forever()]).await.unwrap();
    let mut setup = Setup::of(haft_models::OpenAiChat::new("inner").base_url(&backend.base_url()));
    setup
        .models
        .push(ModelEntry::new("other", haft_models::OfflineModel::new()));
    setup.options = ServerOptions {
        api_key: Some(ApiKey::new("sk-ours")),
        max_body_bytes: 300,
        ..ServerOptions::default()
    };
    let served = setup.serve().await;
    let post = |key: &str, kind: &str, body: String| {
        let request = served.request("POST", PATH).bearer_auth(key);
        served.send(request.header("content-type", kind.to_owned()).body(body))
    };
    let json = "application/json";
    let unknown = r#"{"model":"gone","messages":[]}"#;
    let long = asked(&"x".repeat(300)).to_string();
    for (key, kind, body, expected) in [
        (
            "wrong",
            json,
            asked("hi").to_string(),
            (401, "invalid_api_key", None),
        ),
        (
            "sk-ours",
            "text/plain",
            asked("hi").to_string(),
            (415, "unsupported_content_type", None),
        ),
        ("sk-ours", json, long, (413, "request_too_large", None)),
        (
            "sk-ours",
            json,
            unknown.into(),
            (404, "model_not_found", Some("model")),
        ),
        ("sk-ours", json, "{".into(), (400, "invalid_json", None)),
        ("sk-ours", json, "[]".into(), (400, "invalid_type", None)),
        (
            "sk-ours",
            json,
            r#"{"model":3}"#.into(),
            (400, "invalid_type", Some("model")),
        ),
    ] {
        let answer = post(key, kind, body).await;
        assert_eq!(answer.error(), expected);
    }
    let answer = served
        .send(served.request("GET", PATH).bearer_auth("sk-ours"))
        .await;
    assert_eq!(answer.error().0, 405);
    assert!(backend.received().is_empty());
    post("sk-ours", json, asked("hi").to_string()).await.ok();
    assert_eq!(backend.received().len(), 1);
}

#[tokio::test]
async fn a_server_that_is_busy_says_so() {
    let backend = RawBackend::start().await;
    let mut setup = Setup::of(haft_models::OpenAiChat::new("inner").base_url(&backend.base_url));
    setup.options.max_runs = 1;
    // A backend that says nothing more is waited for no longer.
    setup.options.answer_wait = std::time::Duration::from_millis(10);
    let served = setup.serve().await;
    let mut body = asked("hi");
    body["stream"] = true.into();
    backend.say.send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
    let first = send(&served, &body.to_string()).await;
    let second = complete(&served, body).await;
    assert_eq!(second.error(), (503, "server_is_overloaded", None));
    drop(first);
}

#[tokio::test]
async fn secrets_of_the_backend_are_taken_out_of_answers_that_are_passed_on() {
    const ERROR: &str = r#"{"error":{"message":"bad key sk-backend-secret (sk-backend-"#;
    const PLAIN: &str =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
    const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
        connection: close\r\n\r\ndata: ";
    for (head, rest, is_streamed) in [
        (PLAIN, "secret)\"}}", false),
        (EVENTS, "secret)\"}}\n\ndata: [DONE]\n\n", true),
    ] {
        let backend = RawBackend::start().await;
        let served = serve_chat(&backend.base_url).await;
        let mut request = asked("hi");
        request["stream"] = is_streamed.into();
        backend.say.send(head).unwrap();
        backend.say.send(ERROR).unwrap();
        let sending = tokio::spawn(async move {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            backend.say.send(rest).unwrap();
        });
        let response = send(&served, &request.to_string()).await;
        assert_eq!(response.status(), 200);
        let text = response.text().await.unwrap();
        sending.await.unwrap();
        assert!(!text.contains("secret"), "{text}");
        let expected = "bad key [redacted] ([redacted])\"}}";
        assert!(text.contains(expected), "{text}");
        assert_eq!(text.ends_with("data: [DONE]\n\n"), is_streamed, "{text}");
    }
}

#[tokio::test]
async fn status_that_no_client_expects_becomes_a_bad_gateway() {
    for answer in [
        "HTTP/1.1 205 Reset\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}",
        "HTTP/1.1 206 Partial\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}",
        "HTTP/1.1 299 Odd\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}",
        "HTTP/1.1 600 Odd\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}",
        "HTTP/1.1 999 Odd\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}",
    ] {
        for is_streamed in [false, true] {
            let backend = RawBackend::start().await;
            let served = serve_chat(&backend.base_url).await;
            backend.say.send(answer).unwrap();
            drop(backend.say);
            let mut request = asked("hi");
            request["stream"] = is_streamed.into();
            let response = send(&served, &request.to_string()).await;
            assert_eq!(response.status(), 502, "{answer}");
            let body: Value = response.json().await.unwrap();
            assert_eq!(body["error"]["code"], "backend_misconfigured", "{body}");
        }
    }
}

//! The way to a provider and back, over real connections.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::time::Duration;

use common::events::answer_of;
use common::server::{Ending, Reply, Server};
use haft_core::{Model as _, ModelError, ModelErrorKind, ModelRequest, Streaming};
use haft_models::OpenAiChat;
use haft_models::http::{Endpoint, Http, Timeouts};
use serde_json::json;

const KEY: &str = "sk-hunter2-hunter2-hunter2";

fn asked() -> ModelRequest {
    let mut request = ModelRequest {
        conversation: "hi".into(),
        ..ModelRequest::default()
    };
    request.options.stream = Streaming::Whole;
    request
}

fn model(server: &Server) -> OpenAiChat {
    OpenAiChat::new("m")
        .api_key(KEY)
        .base_url(&format!("{}/v1", server.url))
}

fn good() -> Reply {
    Reply::json(
        200,
        json!({"id": "r", "choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}),
    )
}

async fn error_of(reply: Reply) -> ModelError {
    let server = Server::start([reply]).await;
    answer_of(&model(&server), asked()).await.unwrap_err()
}

#[tokio::test]
async fn the_key_and_the_headers_reach_the_provider() {
    let server = Server::start([good()]).await;
    let model = model(&server).header("X-Project", "blue");
    assert_eq!(answer_of(&model, asked()).await.unwrap().items.len(), 1);
    let request = server.request();
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", "/v1/chat/completions")
    );
    assert_eq!(
        request.header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    assert_eq!(request.header("x-project"), Some("blue"));
    assert_eq!(request.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn other_methods_reach_the_address_with_its_query_and_key() {
    let server = Server::start([good(), good(), Reply::json(404, json!({}))]).await;
    let endpoint = Endpoint::new(&format!("{}/v1?version=2", server.url)).unwrap();
    let endpoint = endpoint.bearer(KEY.into()).unwrap();
    let (http, timeouts) = (Http::default(), Timeouts::default());
    let parameters = [("after", "a&b"), ("limit", "5")];
    let body = http.query(&endpoint, "list", &parameters, "text/plain", &timeouts);
    assert_eq!(body.await.unwrap().content_type(), "application/json");
    let request = server.request();
    assert_eq!(request.method, "GET");
    assert_eq!(request.path, "/v1/list?version=2&after=a%26b&limit=5");
    assert_eq!(request.header("accept"), Some("text/plain"));
    http.delete(&endpoint, "list/1", &timeouts).await.unwrap();
    let request = server.requests().remove(1);
    let line = (request.method.as_str(), request.path.as_str());
    assert_eq!(line, ("DELETE", "/v1/list/1?version=2"));
    let bearer = format!("Bearer {KEY}");
    assert_eq!(request.header("authorization"), Some(bearer.as_str()));
    let refused = http.delete(&endpoint, "list/1", &timeouts).await;
    assert_eq!(refused.unwrap_err().status, Some(404));
}

#[tokio::test]
async fn a_refusal_keeps_the_providers_words_status_and_wait() {
    let body = json!({"error": {"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}});
    let mut error = error_of(Reply::json(429, body).header("retry-after", "7")).await;
    let note = error.operator_note.take().unwrap();
    assert!(
        note.starts_with("HTTP 429 from http://127.0.0.1:"),
        "{note}"
    );
    assert!(note.ends_with("/v1/chat/completions"), "{note}");
    assert_eq!(
        error,
        ModelError::new(ModelErrorKind::RateLimit, "slow down")
            .with_status(429)
            .with_code("rate_limit_exceeded")
            .retry_after(Duration::from_secs(7))
    );
    let error = error_of(Reply::json(529, "{}").header("retry-after-ms", "1500")).await;
    assert_eq!(error.kind, ModelErrorKind::ServerError);
    assert_eq!(error.retry_after, Some(Duration::from_millis(1_500)));
}

#[tokio::test]
async fn a_key_that_the_provider_echoes_is_not_in_the_error() {
    let whole = json!({"error": {"message": format!("bad key {KEY}"), "code": KEY}});
    let page = format!("<html><body>{KEY}{}</body></html>", "x".repeat(100_000));
    let stream = format!("data: {{\"error\":{{\"message\":\"no {KEY}\"}}}}\n\n");
    let long = format!("{}{KEY}", " ".repeat(64 * 1024 - 10));
    for reply in [
        Reply::json(401, whole.clone()),
        Reply::json(200, whole),
        Reply::json(502, page),
        Reply::json(500, long),
        Reply::sse(&stream),
        Reply::json(200, format!("not json {KEY}")),
    ] {
        let error = error_of(reply.clone()).await;
        let shown = format!("{error:?} {error}");
        assert!(
            !shown.contains("hunter2") && !shown.contains("sk-h"),
            "{shown}"
        );
        assert!(shown.len() < 5_000);
    }
}

#[tokio::test]
async fn a_page_of_a_proxy_becomes_a_short_text() {
    let page = "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title><style>b{}</style></head>\
        <body><center><h1>502 Bad Gateway</h1></center><hr>nginx</body></html>";
    let error = error_of(Reply::json(502, page)).await;
    assert_eq!(
        error.to_string(),
        "the model's provider failed (HTTP 502): 502 Bad Gateway 502 Bad Gateway nginx"
    );
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_not_followed() {
    let other = Server::start([good()]).await;
    let target = format!("{}/v1/chat/completions", other.url);
    for status in [301, 302, 307, 308] {
        let error = error_of(Reply::json(status, "").header("location", &target)).await;
        assert_eq!(error.kind, ModelErrorKind::NotFound);
        assert!(error.message.contains(&other.url), "{error}");
    }
    assert!(
        other.requests().is_empty(),
        "no key leaves for another origin"
    );
}

#[tokio::test]
async fn a_redirect_on_the_same_origin_repeats_the_request() {
    let moved = Reply::json(307, "").header("location", "/v2/chat/completions");
    let server = Server::start([moved, good()]).await;
    answer_of(&model(&server), asked()).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests[1].path, "/v2/chat/completions");
    assert_eq!(requests[0].body, requests[1].body);
    let endless = Reply::json(308, "").header("location", "/v1/chat/completions");
    let server = Server::start([endless]).await;
    assert!(answer_of(&model(&server), asked()).await.is_err());
    assert!(server.requests().len() <= 5);
}

#[tokio::test]
async fn every_wait_ends() {
    let short = Timeouts {
        header: Duration::from_millis(50),
        idle: Duration::from_millis(50),
        ..Timeouts::default()
    };
    let started = Reply::sse("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
        .ending(Ending::Silent);
    let server = Server::start([started]).await;
    let error = answer_of(&model(&server).timeouts(short), asked())
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Timeout);
    // Accepts connections, and never answers.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mute = OpenAiChat::new("m").base_url(&url).timeouts(short);
    let error = answer_of(&mute, asked()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Timeout);
    // An answer in one piece begins when it is whole, and has four times as long.
    assert!(error.message.contains("200ms"), "{error}");
    let mut in_pieces = asked();
    in_pieces.options.stream = Streaming::Pieces;
    let error = answer_of(&mute, in_pieces).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Timeout);
    assert!(error.message.contains("50ms"), "{error}");
    // Nobody is there at all.
    drop(listener);
    let error = answer_of(&mute, asked()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unreachable);
    // It says where, and no more of the address than that.
    assert!(error.message.contains(&url), "{error}");
    assert!(!error.message.contains("/chat"), "{error}");
}

#[tokio::test]
async fn an_endless_answer_is_refused() {
    let bounded = Timeouts {
        max_body_bytes: 10_000,
        ..Timeouts::default()
    };
    let server = Server::start([Reply::json(200, "x".repeat(20_000))]).await;
    let error = answer_of(&model(&server).timeouts(bounded), asked())
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Protocol);
    assert!(
        error.to_string().contains("backend response too large"),
        "{error}"
    );
}

#[tokio::test]
async fn an_answer_with_endless_calls_is_refused() {
    let calls = (0..1025).map(|index| {
        json!({"index": index, "id": format!("call_{index}"), "type": "function",
               "function": {"name": "f", "arguments": "{}"}})
    });
    let pieces = calls.clone().map(|call| {
        let delta = json!({"choices": [{"delta": {"tool_calls": [call]}}]});
        format!("data: {delta}\n\n")
    });
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n";
    let streamed = Reply::sse(&(pieces.collect::<String>() + end));
    let message = json!({"content": null, "tool_calls": calls.collect::<Vec<_>>()});
    let whole =
        json!({"id": "r", "choices": [{"message": message, "finish_reason": "tool_calls"}]});
    for reply in [streamed, Reply::json(200, whole)] {
        let error = error_of(reply).await;
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{error}");
        assert!(error.message.contains("1024 items"), "{error}");
    }
}

#[tokio::test]
async fn a_wrong_address_is_told_by_the_first_request() {
    let error = answer_of(&OpenAiChat::new("m").base_url("nowhere"), asked())
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::InvalidRequest);
    let error = answer_of(&OpenAiChat::new("m").api_key("a\nb"), asked())
        .await
        .unwrap_err();
    assert!(error.message.contains("`authorization`"), "{error}");
}

#[tokio::test]
async fn tls_needs_no_provider_installed_for_the_process() {
    // Nobody listens there; setting TLS up comes first.
    let error = answer_of(
        &OpenAiChat::new("m").base_url("https://127.0.0.1:1/v1"),
        asked(),
    )
    .await
    .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unreachable);
    assert!(!error.message.contains("TLS cannot be set up"), "{error}");
}

#[tokio::test]
async fn connections_are_shared_and_used_again() {
    let server = Server::start([good()]).await;
    let http = Http::default();
    let first = model(&server).http(http.clone());
    let second = model(&server).http(http);
    for _ in 0..3 {
        answer_of(&first, asked()).await.unwrap();
        answer_of(&second, asked()).await.unwrap();
    }
    assert_eq!(server.connections(), 1);
    let streamed =
        Reply::sse("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n");
    let server = Server::start([streamed]).await;
    let model = model(&server);
    for _ in 0..5 {
        answer_of(&model, asked()).await.unwrap();
    }
    assert_eq!(server.connections(), 1, "also after `[DONE]`");
}

#[tokio::test]
async fn a_connection_that_the_server_closed_meanwhile_is_replaced() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let model = OpenAiChat::new("m").base_url(&url);
    let body = good().pieces.concat();
    let server = async {
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 64 * 1024];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&body).await.unwrap();
            // It says nothing of closing, and closes.
        }
    };
    let asking = async {
        for _ in 0..3 {
            answer_of(&model, asked()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::join!(server, asking);
}

/// A server that answers the first request of each connection and hangs up when the next comes.
#[tokio::test]
async fn a_connection_that_is_closed_as_the_next_request_comes_says_nothing_about_the_server() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let model = OpenAiChat::new("m").base_url(&url);
    let body = good().pieces.concat();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            CONNECTIONS.fetch_add(1, Ordering::SeqCst);
            let body = body.clone();
            tokio::spawn(async move {
                let mut request = vec![0; 64 * 1024];
                assert!(stream.read(&mut request).await.unwrap() > 0);
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                stream.write_all(head.as_bytes()).await.unwrap();
                stream.write_all(&body).await.unwrap();
                let _ = stream.read(&mut request).await;
            });
        }
    });
    // Several connections are kept, all of them bad.
    for _ in 0..2 {
        let asking = (0..6).map(|_| answer_of(&model, asked()));
        for answer in futures_util::future::join_all(asking).await {
            answer.unwrap();
        }
    }
    assert!(CONNECTIONS.load(Ordering::SeqCst) <= 12);
}

/// A server that refuses a long request without reading it.
#[tokio::test]
async fn an_answer_counts_that_comes_before_the_request_was_read() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/v1", listener.local_addr().unwrap());
    let endpoint = Endpoint::new(&endpoint).unwrap();
    let server = async {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut [0; 64]).await.unwrap() > 0);
            let answer = b"HTTP/1.1 413 No\r\ncontent-length: 8\r\n\r\ntoo long";
            stream.write_all(answer).await.unwrap();
            stream.shutdown().await.unwrap();
            // What was not read is not forgotten: a reset would overtake the answer.
            while stream.read(&mut [0; 4096]).await.unwrap_or(0) > 0 {}
        }
    };
    let (http, timeouts) = (Http::default(), Timeouts::default());
    let asking = async {
        for _ in 0..2 {
            let body = vec![b' '; 64 * 1024 * 1024].into();
            let post = http.post(&endpoint, "chat", body, "application/json", &timeouts);
            let error = post.await.unwrap_err();
            assert_eq!(error.status, Some(413), "{error}");
            assert!(error.message.contains("too long"), "{error}");
        }
    };
    tokio::join!(server, asking);
}

#[tokio::test]
async fn what_does_not_speak_http_is_told_in_words() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let model = OpenAiChat::new("m").base_url(&url);
    for (said, words) in [
        (
            &b"SSH-2.0-OpenSSH_9.2\r\n\r\n"[..],
            "the answer is not HTTP/1.1",
        ),
        (b"", "the server hung up before it answered"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-",
            "in the middle of the answer",
        ),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{",
            "in the middle of the answer",
        ),
    ] {
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut vec![0; 64 * 1024]).await.unwrap() > 0);
            stream.write_all(said).await.unwrap();
        };
        let (answer, ()) = tokio::join!(answer_of(&model, asked()), server);
        let error = answer.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Unreachable, "{error}");
        assert!(error.message.contains(words), "{error}");
    }
}

#[tokio::test]
async fn what_is_passed_on_may_refuse_without_a_word_but_not_succeed_without_one() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/v1", listener.local_addr().unwrap());
    let endpoint = Endpoint::new(&endpoint).unwrap();
    tokio::spawn(async move {
        for status in [429, 500, 200, 204] {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut vec![0; 64 * 1024]).await.unwrap() > 0);
            let head = format!(
                "HTTP/1.1 {status} X\r\nretry-after: 7\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
        }
    });
    let (http, timeouts) = (Http::default(), Timeouts::default());
    let passed_on = || {
        http.forward(
            &endpoint,
            "chat",
            "{}".into(),
            "application/json",
            &timeouts,
        )
    };
    let limited = passed_on().await.unwrap();
    assert_eq!(limited.status, 429);
    assert_eq!(limited.retry_after, Some(Duration::from_secs(7)));
    assert_eq!(passed_on().await.unwrap().status, 500);
    for _ in 0..2 {
        let error = passed_on().await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{error}");
    }
}

#[tokio::test]
async fn what_nobody_hears_in_pieces_comes_whole_from_a_server_nearby() {
    let server = Server::start([good()]).await;
    let mut request = asked();
    request.options.stream = Streaming::Either;
    answer_of(&model(&server), request).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests[0].header("accept"), Some("application/json"));
    assert!(
        requests[0]
            .json()
            .get("stream")
            .is_none_or(|it| it == false)
    );
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let started = Reply::sse("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
        .ending(Ending::Silent);
    let server = Server::start([started]).await;
    let stream = model(&server).send(asked()).await;
    drop(stream);
    server.until_closed().await;
}

//! Bodies that are passed on as they are.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use haft_core::ModelErrorKind;
use haft_models::http::{Forwarded, Http, Timeouts};
use haft_models::{Adapter, Backend, ModelConfig};
use serde_json::{Map, Value, json};

use super::common::server::{Ending, Reply, Server};
use super::model;

fn body(json: Value) -> Map<String, Value> {
    json.as_object().unwrap().clone()
}

async fn text(forwarded: Forwarded) -> String {
    let mut text = Vec::new();
    let mut body = forwarded.body;
    while let Some(chunk) = body.next().await {
        text.extend_from_slice(&chunk.unwrap());
    }
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn only_the_name_of_the_model_changes_on_the_way() {
    let stream = "data: {\"odd\" : 1}\r\n\r\n: ping\n\ndata: [DONE]\n\n";
    let reply = Reply::sse(stream).cut_at(&[3, 11, 30]);
    let server = Server::start([reply, Reply::json(200, "{ \"id\":1 }")]).await;
    let model = model(&server)
        .api_key("sk-hunter22")
        .header("x-team", "blue")
        .extra(body(json!({"seed": 1})));
    let asked = json!({"messages": [{"role": "user", "content": "hi"}], "model": "public",
        "stream": true, "n": 2, "vendor": {"b": null, "a": 1.50}});
    let answer = model.forward(body(asked)).await.unwrap();
    assert_eq!(
        (answer.status, answer.content_type.as_deref()),
        (200, Some("text/event-stream"))
    );
    assert!(answer.is_success());
    assert_eq!(text(answer).await, stream);
    let request = server.request();
    assert_eq!(request.path, "/v1/chat/completions");
    assert_eq!(request.header("authorization"), Some("Bearer sk-hunter22"));
    assert_eq!(request.header("x-team"), Some("blue"));
    assert_eq!(request.header("accept"), Some("text/event-stream"));
    assert_eq!(
        String::from_utf8(request.body).unwrap(),
        r#"{"messages":[{"role":"user","content":"hi"}],"model":"test-model","stream":true,"n":2,"vendor":{"b":null,"a":1.5}}"#
    );
    let whole = model.forward(Map::new()).await.unwrap();
    assert_eq!(text(whole).await, "{ \"id\":1 }");
    let second = &server.requests()[1];
    assert_eq!(second.header("accept"), Some("application/json"));
    assert_eq!(second.body, br#"{"model":"test-model"}"#);
}

#[tokio::test]
async fn a_refusal_is_passed_on_without_the_key_and_not_without_end() {
    let refusal = json!({"error": {"message": "bad key sk-hunter22", "code": "invalid_api_key"}});
    let server = Server::start([
        Reply::json(401, refusal).header("retry-after", "2"),
        Reply::json(500, "x".repeat(200_000)).in_pieces_of(1_000),
    ])
    .await;
    let model = model(&server).api_key("sk-hunter22");
    let answer = model.forward(Map::new()).await.unwrap();
    assert_eq!(answer.status, 401);
    assert_eq!(answer.content_type.as_deref(), Some("application/json"));
    assert_eq!(answer.retry_after, Some(Duration::from_secs(2)));
    assert!(!answer.is_success());
    assert_eq!(
        text(answer).await,
        r#"{"error":{"message":"bad key [redacted]","code":"invalid_api_key"}}"#
    );
    let answer = model.forward(Map::new()).await.unwrap();
    assert!(text(answer).await.len() <= 64 * 1024);
}

#[tokio::test]
async fn what_breaks_off_or_stalls_or_points_elsewhere_is_an_error() {
    let server = Server::start([
        Reply::sse("data: 1\n\n").ending(Ending::Broken),
        Reply::sse("data: 1\n\n").ending(Ending::Silent),
        Reply::json(302, "").header("location", "https://elsewhere.example/v1"),
    ])
    .await;
    let model = model(&server).timeouts(Timeouts {
        idle: Duration::from_millis(200),
        ..Timeouts::default()
    });
    for kind in [ModelErrorKind::Unreachable, ModelErrorKind::Timeout] {
        let mut body = model.forward(Map::new()).await.unwrap().body;
        assert_eq!(body.next().await.unwrap().unwrap(), "data: 1\n\n");
        assert_eq!(body.next().await.unwrap().unwrap_err().kind, kind);
        assert!(body.next().await.is_none(), "nothing comes after an error");
    }
    let error = model.forward(Map::new()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::NotFound);
    let error = model
        .base_url("http://127.0.0.1:1")
        .forward(Map::new())
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unreachable);
}

#[tokio::test]
async fn an_entry_of_a_file_gives_the_way_to_pass_bodies_on() {
    let server = Server::start([Reply::json(200, "{}")]).await;
    let mut config = ModelConfig::new("public", Adapter::OpenaiChat);
    config.model = Some("inner".into());
    config.base_url = Some(server.url.clone());
    let backend = Backend::from_config_with(&config, &|_| None, &Http::default()).unwrap();
    assert_eq!(backend.model().name(), "inner");
    let chat = Arc::clone(backend.chat().unwrap());
    chat.forward(body(json!({"model": "public"})))
        .await
        .unwrap();
    assert_eq!(server.request().json(), json!({"model": "inner"}));
    let other = Backend::from_config(&ModelConfig::new("demo", Adapter::Offline)).unwrap();
    assert!(other.chat().is_none());
}

//! `content_hosts`: private addresses of content never reach a provider, whichever route they take.

use haft_models::testing::{ScriptedServer, say};
use haft_models::{Anthropic, OpenAiChat, OpenAiResponses};
use serde_json::{Value, json};

use crate::support::{Served, Setup};
use crate::websocket::connect;

const PRIVATE: &str = "http://169.254.169.254/latest";
const PUBLIC: &str = "https://example.com/a.png";

/// A server in front of this backend in every protocol, those with a translation of Chat Completions included.
async fn all_in_front_of(backend: &ScriptedServer) -> Vec<(&'static str, Served)> {
    let chat = OpenAiChat::new("m").base_url(&backend.base_url());
    let responses = OpenAiResponses::new("m").base_url(&backend.base_url());
    let anthropic = Anthropic::new("m").base_url(&backend.url());
    vec![
        ("chat", Setup::of(chat).serve().await),
        ("responses", Setup::of(responses).serve().await),
        ("anthropic", Setup::of(anthropic).serve().await),
    ]
}

fn input(url: &str) -> Value {
    json!([
        {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": url}]},
        {"type": "message", "role": "assistant", "content": "A cat."},
        {"type": "message", "role": "user", "content": "And now?"},
    ])
}

fn chat(url: &str) -> Value {
    json!({"model": "default", "messages": [{"role": "user", "content": [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": url}},
    ]}]})
}

#[tokio::test]
async fn private_addresses_are_rejected_on_every_route() {
    let backend = ScriptedServer::start([say("A cat.").forever()])
        .await
        .unwrap();
    for (protocol, served) in all_in_front_of(&backend).await {
        for (path, body, param) in [
            (
                "/chat/completions",
                chat(PRIVATE),
                "messages[0].content[1].image_url.url",
            ),
            (
                "/responses",
                json!({"input": input(PRIVATE)}),
                "input[0].content[0].image_url",
            ),
            (
                "/responses/compact",
                json!({"model": "default", "input": input(PRIVATE)}),
                "input[0].content[0].image_url",
            ),
            (
                "/responses/input_tokens",
                json!({"model": "default", "input": input(PRIVATE)}),
                "input[0].content[0].image_url",
            ),
        ] {
            let refused = served.post(path, body).await;
            let expected = (400, "invalid_value", Some(param));
            assert_eq!(refused.error(), expected, "{protocol} {path}");
        }
        let mut streamed = chat(PRIVATE);
        streamed["stream"] = true.into();
        assert_eq!(
            served.post("/chat/completions", streamed).await.status,
            400,
            "{protocol}"
        );

        let conversation = served.post("/conversations", json!({"items": input(PRIVATE)}));
        let id = conversation.await.ok()["id"].clone();
        for path in ["/responses", "/responses/input_tokens"] {
            let body = json!({"model": "default", "input": "go on", "conversation": id});
            let refused = served.post(path, body).await;
            let expected = (400, "invalid_value", Some("conversation"));
            assert_eq!(refused.error(), expected, "{protocol} {path}");
        }

        let mut socket = connect(&served).await;
        socket.create(json!({"input": input(PRIVATE)})).await;
        assert_eq!(socket.refused().await.0, 400, "{protocol}");
    }
    assert!(backend.received().is_empty());
}

#[tokio::test]
async fn public_addresses_pass_on_every_route() {
    let backend = ScriptedServer::start([say("A cat.").forever()])
        .await
        .unwrap();
    for (protocol, served) in all_in_front_of(&backend).await {
        for (path, body) in [
            ("/chat/completions", chat(PUBLIC)),
            ("/responses", json!({"input": input(PUBLIC)})),
            (
                "/responses/compact",
                json!({"model": "default", "input": input(PUBLIC)}),
            ),
        ] {
            let sent = backend.received().len();
            assert_eq!(
                served.post(path, body).await.status,
                200,
                "{protocol} {path}"
            );
            assert!(backend.received().len() > sent, "{protocol} {path}");
        }
    }
}

//! The scripted server: each protocol in its recorded shape, every fault, expectations over HTTP.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

mod deferred;
mod expectations;
mod faults;
mod shapes;

use std::sync::Once;

use bytes::Bytes;
use haft_models::testing::{Protocol, ScriptedServer};
use reqwest::{Client, Response};
use serde_json::{Value, json};

/// A client that knows nothing of models.
fn client() -> Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Only the first call in a process can succeed, and this is it.
        drop(rustls::crypto::ring::default_provider().install_default());
    });
    Client::builder().no_proxy().build().unwrap()
}

/// The least request of a protocol, with a user who says so.
fn request(protocol: Protocol, text: &str) -> Value {
    match protocol {
        Protocol::Responses => json!({"model": "m", "input": text}),
        Protocol::Messages => json!({
            "model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": text}],
        }),
        _ => json!({"model": "m", "messages": [{"role": "user", "content": text}]}),
    }
}

fn with_stream(mut body: Value, stream: bool) -> Value {
    body["stream"] = stream.into();
    body
}

async fn post(
    server: &ScriptedServer,
    protocol: Protocol,
    body: &Value,
) -> reqwest::Result<Response> {
    let url = format!("{}{}", server.url(), protocol.path());
    let request = client()
        .post(url)
        .header("content-type", "application/json");
    request.body(body.to_string()).send().await
}

async fn json_of(response: Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

/// What came of a streamed body, and whether it broke off.
async fn chunks_of(mut response: Response) -> (Vec<Bytes>, bool) {
    let mut chunks = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => chunks.push(chunk),
            Ok(None) => return (chunks, false),
            Err(_) => return (chunks, true),
        }
    }
}

async fn stream(server: &ScriptedServer, protocol: Protocol) -> (String, bool) {
    let body = with_stream(request(protocol, "hi"), true);
    let response = post(server, protocol, &body).await.unwrap();
    assert_eq!(response.status(), 200);
    let (chunks, is_broken) = chunks_of(response).await;
    (String::from_utf8(chunks.concat()).unwrap(), is_broken)
}

//! `POST /chat/completions`.

mod backend;
mod passed;
mod translated;

use haft_models::OpenAiChat;
use haft_models::testing::ScriptedServer;
use serde_json::{Value, json};

use crate::support::{Answer, Served, Setup};

const PATH: &str = "/chat/completions";

/// A server with a model behind Chat Completions, called `public` here and `inner` there.
async fn in_front_of(backend: &ScriptedServer) -> Served {
    serve_chat(&backend.base_url()).await
}

async fn serve_chat(base_url: &str) -> Served {
    let model = OpenAiChat::new("inner")
        .base_url(base_url)
        .api_key("sk-backend-secret");
    let mut setup = Setup::of(model);
    setup.models[0].aliases.push("public".into());
    setup.serve().await
}

fn asked(text: &str) -> Value {
    json!({"model": "default", "messages": [{"role": "user", "content": text}]})
}

/// Sends bytes as they are.
async fn send(served: &Served, body: &str) -> reqwest::Response {
    let request = served.request("POST", PATH);
    let request = request.header("content-type", "application/json");
    request.body(body.to_owned()).send().await.unwrap()
}

/// Sends a body and waits for the whole answer.
async fn complete(served: &Served, body: Value) -> Answer {
    served.post(PATH, body).await
}

/// The chunks of a streamed answer, `[DONE]` demanded.
async fn stream(served: &Served, mut body: Value) -> Vec<Value> {
    body["stream"] = true.into();
    let response = send(served, &body.to_string()).await;
    assert_eq!(response.status(), 200);
    let kind = response.headers()["content-type"].to_str().unwrap();
    assert!(kind.starts_with("text/event-stream"), "{kind}");
    let text = response.text().await.unwrap();
    let (mut chunks, end) = frames(&text);
    assert_eq!(end, "data: [DONE]", "{text}");
    chunks.pop();
    chunks
}

/// The data of all frames, null where it is no JSON, and the last frame.
fn frames(text: &str) -> (Vec<Value>, &str) {
    let frames: Vec<&str> = text.split_terminator("\n\n").collect();
    let frames: Vec<&str> = frames
        .into_iter()
        .filter(|it| !it.starts_with(':'))
        .collect();
    let data = |frame: &&str| {
        let data = frame.strip_prefix("data: ").unwrap();
        serde_json::from_str(data).unwrap_or_default()
    };
    (frames.iter().map(data).collect(), frames.last().unwrap())
}

/// All text of some chunks.
fn text_of(chunks: &[Value]) -> String {
    let deltas = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str());
    deltas.collect()
}

//! Chat Completions over real HTTP: what is sent, and what is made of what comes back.

#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(
    clippy::needless_pass_by_value,
    clippy::format_collect,
    clippy::format_push_string
)]

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod calls;
mod forwarded;
mod reasoning;
mod recovered;
mod requests;
mod streams;

use common::events::answer_of;
use common::server::{Reply, Server};
use haft_core::{Item, ModelError, ModelRequest, ModelResponse, Streaming};
use haft_models::OpenAiChat;
use serde_json::Value;

/// A model at this server, of which nothing is known.
fn model(server: &Server) -> OpenAiChat {
    OpenAiChat::new("test-model").base_url(&format!("{}/v1", server.url))
}

/// A request with the shared tools.
fn asked(stream: Streaming) -> ModelRequest {
    let mut request = ModelRequest {
        conversation: "hi".into(),
        tools: common::conversation::tools(),
        ..ModelRequest::default()
    };
    request.options.stream = stream;
    request
}

async fn answered(reply: Reply) -> Result<ModelResponse, ModelError> {
    let server = Server::start([reply]).await;
    answer_of(&model(&server), asked(Streaming::Pieces)).await
}

/// Chunks as server-sent events, with `[DONE]`.
fn chunks(chunks: &[Value]) -> Reply {
    let lines: String = chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    Reply::sse(&format!("{lines}data: [DONE]\n\n"))
}

/// The calls of an answer: id, name, arguments.
fn calls_of(response: &ModelResponse) -> Vec<(&str, &str, &str)> {
    let calls = response.items.iter().filter_map(|item| match item {
        Item::FunctionCall(call) => Some((
            call.call_id.as_str(),
            call.name.as_str(),
            call.arguments.as_str(),
        )),
        _ => None,
    });
    calls.collect()
}

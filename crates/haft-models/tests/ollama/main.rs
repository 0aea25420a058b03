//! Ollama's own chat over real HTTP: what is sent, and what is made of what comes back.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod requests;

use common::server::Server;
use haft_models::Ollama;

fn model(server: &Server) -> Ollama {
    Ollama::new("qwen3:8b").base_url(&server.url)
}

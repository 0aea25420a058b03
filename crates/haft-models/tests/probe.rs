//! Finding a model on this machine, or in the environment.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::time::Duration;

use common::server::{Ending, Reply, Server};
use haft_core::Model as _;
use haft_models::probe::{self, Found, Place};
use haft_models::testing::{ScriptedServer, say};
use haft_models::{Adapter, ChatServer, from_config_with, http::Http};
use serde_json::{Value, json};

/// Long, so that a slow machine changes nothing: what does not answer refuses.
const LONG: Duration = Duration::from_secs(20);

fn models(list: &Value) -> Reply {
    Reply::json(200, json!({"object": "list", "data": list}))
}

/// Where nobody listens.
async fn nowhere() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[tokio::test]
async fn the_first_place_that_has_a_model_is_found() {
    let gone = nowhere().await;
    let broken = Server::start([Reply::json(500, "oops")]).await;
    let llama = Server::start([models(&json!([
        {"id": "text-embedding-nomic", "owned_by": "llamacpp"},
        {"id": "qwen3-8b", "owned_by": "llamacpp"}]))])
    .await;
    let vllm = Server::start([models(&json!([{"id": "other", "owned_by": "vllm"}]))]).await;
    let places = vec![
        Place::ollama(gone),
        Place::openai(&broken.url),
        Place::openai(format!("{}/v1", llama.url)),
        Place::openai(format!("{}/v1", vllm.url)),
    ];
    let found = probe::first_of(places, LONG).await.unwrap();
    assert_eq!(
        found,
        Found {
            adapter: Adapter::OpenaiChat,
            base_url: format!("{}/v1", llama.url),
            model: "qwen3-8b".into(),
            server: Some(ChatServer::LlamaCpp),
        }
    );
    let request = llama.request();
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("GET", "/v1/models")
    );
}

#[tokio::test]
async fn ollama_is_asked_in_its_own_words_and_preferred() {
    let ollama = Server::start([Reply::json(
        200,
        json!({"models": [
            {"name": "nomic", "details": {"family": "nomic-bert"}},
            {"name": "qwen3:8b", "model": "qwen3:8b", "details": {"family": "qwen3"}}]}),
    )])
    .await;
    let other = Server::start([models(&json!([{"id": "other"}]))]).await;
    let places = vec![
        Place::ollama(&ollama.url),
        Place::openai(format!("{}/v1", other.url)),
    ];
    let found = probe::first_of(places, LONG).await.unwrap();
    assert_eq!(
        (found.adapter, found.model.as_str()),
        (Adapter::Ollama, "qwen3:8b")
    );
    assert_eq!(ollama.request().path, "/api/tags");
}

#[tokio::test]
async fn haft_itself_and_servers_without_models_are_passed_over() {
    let own = Server::start([models(&json!([{"id": "qwen3-8b", "owned_by": "haft"}]))]).await;
    let empty = Server::start([models(&json!([]))]).await;
    let page = Server::start([Reply::json(200, "<html>")]).await;
    let places = || {
        [&own, &empty, &page]
            .map(|server| Place::openai(&server.url))
            .to_vec()
    };
    assert_eq!(probe::first_of(places(), LONG).await, None);
    assert_eq!(probe::first_of(Vec::new(), LONG).await, None);
}

#[tokio::test]
async fn a_server_that_says_nothing_keeps_nobody_waiting() {
    let silent = Server::start([models(&json!([{"id": "slow"}])).ending(Ending::Silent)]).await;
    let ready = Server::start([models(&json!([{"id": "ready"}]))]).await;
    let places = vec![Place::openai(&silent.url), Place::openai(&ready.url)];
    // Every wait ends: without a limit this test would never.
    let found = probe::first_of(places, Duration::from_secs(2)).await;
    assert_eq!(found.unwrap().model, "ready");
}

#[tokio::test]
async fn what_was_found_can_be_talked_to() {
    let server = ScriptedServer::start([say("hello")]).await.unwrap();
    for place in [
        Place::openai(server.base_url()),
        Place::ollama(server.url()),
    ] {
        let found = probe::first_of(vec![place], LONG).await.unwrap();
        assert_eq!(found.model, "scripted");
        let model = from_config_with(&found.config(), &|_| None, &Http::default()).unwrap();
        assert_eq!(model.name(), "scripted");
    }
}

#[test]
fn the_address_of_ollama_is_respected() {
    let variables = |name: &str| (name == "OLLAMA_HOST").then(|| String::from("box.example:1234"));
    let places = probe::usual_places(&variables);
    assert_eq!(places[0], Place::ollama("http://box.example:1234"));
    assert_eq!(places.len(), 4);
}

#[test]
fn keys_in_the_environment_name_a_model() {
    let from = |variables: &[(&str, &str)]| {
        let config = probe::from_environment(&|name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })?;
        let base = config.base_url.clone().unwrap_or_default();
        let key = config.api_key_env.clone().unwrap();
        Some(format!(
            "{} {} {key} {base}",
            config.adapter.as_str(),
            config.model()
        ))
    };
    assert_eq!(from(&[]), None);
    assert_eq!(from(&[("OPENAI_API_KEY", " "), ("HAFT_MODEL", "m")]), None);
    assert_eq!(
        from(&[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")]).unwrap(),
        "openai-responses gpt-5.2 OPENAI_API_KEY "
    );
    assert_eq!(
        from(&[
            ("OPENAI_API_KEY", "k"),
            ("OPENAI_MODEL", "a"),
            ("HAFT_MODEL", "b"),
            ("OPENAI_BASE_URL", "http://h/v1")
        ])
        .unwrap(),
        "openai-responses a OPENAI_API_KEY http://h/v1"
    );
    assert_eq!(
        from(&[("ANTHROPIC_API_KEY", "k"), ("HAFT_MODEL", "b")]).unwrap(),
        "anthropic b ANTHROPIC_API_KEY "
    );
}

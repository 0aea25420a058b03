//! Embeddings, over real connections.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::server::{Reply, Server};
use haft_catalog::search::{DenseSearch, Reason, SearchIndex, SearchRequest};
use haft_core::{Embedder as _, ModelErrorKind, ToolDefinition};
use haft_models::OpenAiEmbeddings;
use serde_json::{Value, json};
use std::sync::Arc;

fn embedder(server: &Server) -> OpenAiEmbeddings {
    let embedder = OpenAiEmbeddings::new("minilm").api_key("sk-hunter2");
    embedder.base_url(&format!("{}/v1", server.url))
}

fn answer(vectors: &Value) -> Reply {
    Reply::json(
        200,
        json!({"object": "list", "data": vectors, "model": "minilm"}),
    )
}

#[tokio::test]
async fn texts_go_in_batches_and_vectors_come_in_their_order() {
    let first = json!([{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1.5, 0]}]);
    let second = json!([{"embedding": [2, 2]}]);
    let server = Server::start([answer(&first), answer(&second)]).await;
    let vectors = embedder(&server)
        .batch(2)
        .embed(&["a", "b", "c"])
        .await
        .unwrap();
    assert_eq!(vectors, [[1.5, 0.0], [0.0, 1.0], [2.0, 2.0]]);
    let requests = server.requests();
    assert_eq!(requests[0].path, "/v1/embeddings");
    assert_eq!(
        requests[0].header("authorization"),
        Some("Bearer sk-hunter2")
    );
    let sent = json!({"model": "minilm", "input": ["a", "b"], "encoding_format": "float"});
    assert_eq!(requests[0].json(), sent);
    assert_eq!(requests[1].json()["input"], json!(["c"]));
}

#[tokio::test]
async fn what_is_no_vector_for_each_text_is_refused() {
    let wrong = [
        json!([]),
        json!([{"index": 0, "embedding": [1]}]),
        json!([{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]),
        json!([{"index": 0, "embedding": [1]}, {"index": 7, "embedding": [1]}]),
        json!([{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1]}]),
        json!([{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]),
        json!([{"index": 0, "embedding": "AAAA"}]),
    ];
    for vectors in wrong {
        let server = Server::start([answer(&vectors)]).await;
        let error = embedder(&server).embed(&["a", "b"]).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{vectors}");
    }
    let server = Server::start([Reply::json(
        401,
        json!({"error": {"message": "no sk-hunter2"}}),
    )])
    .await;
    let error = embedder(&server).embed(&["a"]).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unauthorized);
    assert!(!error.to_string().contains("hunter2"));
}

fn index() -> SearchIndex {
    let tool = |name: &str, text: &str| {
        let tool = ToolDefinition::builder(name).description(text);
        tool.parameters(json!({"type": "object"})).build().unwrap()
    };
    SearchIndex::of([
        tool("get_weather", "Tells the weather."),
        tool("send_mail", "Sends a letter."),
    ])
}

#[tokio::test]
async fn a_search_asks_for_the_tools_once_and_finds_what_shares_no_word() {
    let tools = json!([{"index": 0, "embedding": [1, 0]}, {"index": 1, "embedding": [0, 1]}]);
    let query = json!([{"index": 0, "embedding": [0.9, -0.1]}]);
    let server = Server::start([answer(&tools), answer(&query), answer(&query)]).await;
    let search = DenseSearch::new(Arc::new(embedder(&server)));
    let index = index();
    for _ in 0..2 {
        let request = SearchRequest::new("is it raining");
        assert!(index.search(&request).unwrap().hits.is_empty());
        let found = search.search(&index, &request).await.unwrap();
        assert_eq!(
            (&*found.hits[0].name, found.hits[0].reason),
            ("get_weather", Reason::Dense)
        );
        assert_eq!(found.hits.len(), 1);
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    let texts = json!([
        "get weather. Tells the weather.",
        "send mail. Sends a letter."
    ]);
    assert_eq!(requests[0].json()["input"], texts);
}

#[tokio::test]
async fn without_its_embedder_a_search_goes_by_words() {
    let server = Server::start([Reply::json(500, json!({}))]).await;
    let search = DenseSearch::new(Arc::new(embedder(&server)));
    let index = index();
    let request = SearchRequest::new("the weather");
    let found = search.search(&index, &request).await.unwrap();
    assert_eq!(found, index.search(&request).unwrap());
}

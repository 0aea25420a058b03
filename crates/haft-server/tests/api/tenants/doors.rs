//! Every route has its row, and none of them opens without a good key.

use std::collections::BTreeSet;

use haft_models::OfflineModel;
use haft_server::{ModelEntry, Server};
use haft_store::MemoryStore;
use serde_json::json;

use super::world::World;

/// How a route keeps tenants apart, and which test shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    /// An id of a response, a conversation, or a conversation and one of its items stands in the
    /// path (`paths`).
    Response,
    Conversation,
    ConversationItem,
    /// Ids can stand in the body (`bodies`), and what is made is its maker's (`paths`).
    Body,
    /// A list of what the caller has (`lists`), or a WebSocket (`sockets`).
    List,
    /// The same for everybody who has a key.
    Shared,
    /// For everybody, and nothing of a tenant's in it.
    Open,
}

/// Every route. A new one belongs here, and into the tests that its row names.
pub(super) const ROWS: &[(&str, &str, Row)] = &[
    ("POST", "/v1/responses", Row::Body),
    ("GET", "/v1/responses", Row::List),
    ("POST", "/v1/responses/input_tokens", Row::Body),
    ("POST", "/v1/responses/compact", Row::Body),
    ("GET", "/v1/responses/{id}", Row::Response),
    ("DELETE", "/v1/responses/{id}", Row::Response),
    ("POST", "/v1/responses/{id}/cancel", Row::Response),
    ("GET", "/v1/responses/{id}/input_items", Row::Response),
    ("GET", "/v1/responses/{id}/trace", Row::Response),
    ("POST", "/v1/conversations", Row::Body),
    ("GET", "/v1/conversations/{id}", Row::Conversation),
    ("POST", "/v1/conversations/{id}", Row::Conversation),
    ("DELETE", "/v1/conversations/{id}", Row::Conversation),
    ("GET", "/v1/conversations/{id}/items", Row::Conversation),
    ("POST", "/v1/conversations/{id}/items", Row::Conversation),
    (
        "GET",
        "/v1/conversations/{id}/items/{item_id}",
        Row::ConversationItem,
    ),
    (
        "DELETE",
        "/v1/conversations/{id}/items/{item_id}",
        Row::ConversationItem,
    ),
    ("POST", "/v1/chat/completions", Row::Shared),
    ("GET", "/v1/haft/mcp", Row::List),
    ("GET", "/v1/haft/mcp/calls", Row::List),
    ("GET", "/v1/models", Row::Shared),
    ("GET", "/v1/models/{id}", Row::Shared),
    ("GET", "/metrics", Row::Open),
    ("GET", "/healthz", Row::Open),
    ("GET", "/readyz", Row::Open),
];

#[test]
fn every_route_has_a_row() {
    let server = Server::builder(std::sync::Arc::new(MemoryStore::new()))
        .model(ModelEntry::new("default", OfflineModel::new()))
        .build()
        .unwrap();
    let routes = server.routes();
    let routes: BTreeSet<_> = routes
        .iter()
        .map(|it| (it.method, it.path.as_str()))
        .collect();
    let rows: BTreeSet<_> = ROWS
        .iter()
        .map(|(method, path, _)| (*method, *path))
        .collect();
    assert_eq!(rows.len(), ROWS.len(), "a row stands twice");
    assert_eq!(routes, rows);
}

#[tokio::test]
async fn no_route_opens_without_a_good_key() {
    let world = World::new().await;
    let estate = world.estate(&world.own).await;
    let keys = [
        ("missing", None),
        ("wrong", Some("haft_wrong")),
        ("revoked", Some(world.revoked.as_str())),
        ("expired", Some(world.expired.as_str())),
    ];
    world.store.take();
    for (method, path, row) in ROWS {
        if *row == Row::Open {
            continue;
        }
        let id = if path.contains("responses") {
            &estate.response
        } else {
            &estate.conversation
        };
        let path = path.replace("{id}", id);
        let path = path.replace("{item_id}", &estate.conversation_item);
        let body = (*method == "POST").then(|| json!({"input": "x"}));
        for (what, key) in keys {
            let answer = world.served.ask(key, method, &path, body.as_ref()).await;
            let told = (answer.status, answer.error().1);
            assert_eq!(
                told,
                (401, "invalid_api_key"),
                "{method} {path} with a {what} key"
            );
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            let told = answer.body.to_string();
            assert!(!told.contains(id), "{told}");
        }
        let answer = world
            .served
            .ask(Some(&world.own), method, &path, body.as_ref())
            .await;
        assert_ne!(answer.status, 401, "{method} {path} with its own key");
    }
    // Nor does a path that is none, or a method that is not taken, tell anything.
    for (method, path) in [
        ("GET", "/v1/nowhere"),
        ("PUT", "/v1/responses"),
        ("GET", "/v1/"),
    ] {
        for (what, key) in keys {
            let answer = world.served.ask(key, method, path, None).await;
            assert_eq!(answer.status, 401, "{method} {path} with a {what} key");
        }
    }
}

#[tokio::test]
async fn who_has_no_good_key_does_not_reach_the_store() {
    let world = World::new().await;
    let estate = world.estate(&world.own).await;
    let path = format!("/v1/responses/{}", estate.response);
    for key in [&world.revoked, &world.expired] {
        let seen = world.seen(key, "GET", &path, None, &[]).await;
        assert_eq!((seen.status, seen.asked), (401, vec![]));
    }
}

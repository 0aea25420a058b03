//! Ids in paths: those of another tenant are unknown, and what he has stays as it is.

use serde_json::{Value, json};

use super::doors::{ROWS, Row};
use super::world::{Estate, World, unknown};

/// The ids that a route can be asked with, each with all that stands in its path.
fn ids(row: Row, estate: &Estate) -> Vec<[&str; 2]> {
    match row {
        Row::Response => vec![
            [&estate.response, ""],
            [&estate.finished, ""],
            [&estate.running, ""],
        ],
        Row::Conversation => vec![[&estate.conversation, ""]],
        Row::ConversationItem => vec![[&estate.conversation, &estate.conversation_item]],
        Row::Body | Row::List | Row::Shared | Row::Open => Vec::new(),
    }
}

fn body_of(method: &str, path: &str) -> Option<Value> {
    match (method, path) {
        ("POST", path) if path.ends_with("/items") => {
            Some(json!({"items": [{"role": "user", "content": "more"}]}))
        }
        ("POST", path) if path.ends_with("/cancel") => Some(json!({})),
        ("POST", _) => Some(json!({"metadata": {"k": "v"}})),
        _ => None,
    }
}

#[tokio::test]
async fn an_id_of_another_tenant_in_a_path_is_unknown() {
    let world = World::new().await;
    let mut asked = 0;
    for (method, route, row) in ROWS {
        // Anew each time: the last to ask is the owner, who may delete it.
        let estate = world.estate(&world.own).await;
        let body = body_of(method, route);
        for [id, item_id] in ids(*row, &estate) {
            for query in [
                "",
                "?stream=true",
                "?stream=true&starting_after=0",
                "?limit=1",
            ] {
                if !query.is_empty() && *method != "GET" {
                    continue;
                }
                let at = |id: &str, item_id: &str| {
                    let path = route.replace("{id}", id).replace("{item_id}", item_id);
                    format!("{path}{query}")
                };
                let (no_id, no_item) = (unknown(id), unknown(&estate.conversation_item));
                let nowhere = world
                    .seen(
                        &world.foreign,
                        method,
                        &at(&no_id, &no_item),
                        body.as_ref(),
                        &[&no_id, &no_item],
                    )
                    .await;
                let foreign = world
                    .seen(
                        &world.foreign,
                        method,
                        &at(id, item_id),
                        body.as_ref(),
                        &[id, item_id],
                    )
                    .await;
                assert_eq!(nowhere.status, 404, "{method} {route}");
                assert_eq!(foreign, nowhere, "{method} {route}{query} with {id}");
                asked += 1;
            }
        }
        // Everything is there for those whose it is.
        let key = &world.colleague;
        for [id, item_id] in ids(*row, &estate) {
            let path = route.replace("{id}", id).replace("{item_id}", item_id);
            let answer = world
                .served
                .ask(Some(key), method, &path, body.as_ref())
                .await;
            let is_mistaken = path.ends_with("/cancel") && id == estate.response;
            let expected = if is_mistaken { 400 } else { 200 };
            assert_eq!(answer.status, expected, "{method} {path}: {}", answer.body);
        }
    }
    assert!(asked > 30, "{asked}");
}

#[tokio::test]
async fn an_item_of_another_conversation_is_unknown_in_ones_own() {
    let world = World::new().await;
    let estate = world.estate(&world.own).await;
    let mine = world.estate(&world.foreign).await;
    for item in [
        &estate.conversation_item,
        &estate.input_item,
        &estate.output_item,
    ] {
        for method in ["GET", "DELETE"] {
            let at = |item: &str| format!("/v1/conversations/{}/items/{item}", mine.conversation);
            let no_item = unknown(item);
            let nowhere = world
                .seen(&world.foreign, method, &at(&no_item), None, &[&no_item])
                .await;
            let foreign = world
                .seen(&world.foreign, method, &at(item), None, &[item])
                .await;
            assert_eq!(
                (nowhere.status, nowhere.code.as_deref()),
                (404, Some("item_not_found"))
            );
            assert_eq!(foreign, nowhere, "{method} {item}");
        }
    }
}

#[tokio::test]
async fn a_run_of_another_tenant_goes_on_whoever_tries_to_stop_it() {
    let world = World::new().await;
    let estate = world.estate(&world.own).await;
    let path = format!("/v1/responses/{}", estate.running);
    let cancel = format!("{path}/cancel");
    let (key, own) = (Some(world.foreign.as_str()), Some(world.own.as_str()));
    assert_eq!(
        world
            .served
            .ask(key, "POST", &cancel, Some(&json!({})))
            .await
            .status,
        404
    );
    assert_eq!(
        world.served.ask(key, "DELETE", &path, None).await.status,
        404
    );
    let running = world.served.ask(own, "GET", &path, None).await.ok();
    assert_eq!(running["status"], "in_progress");
    let cancelled = world
        .served
        .ask(own, "POST", &cancel, Some(&json!({})))
        .await
        .ok();
    assert_eq!(cancelled["status"], "cancelled");
}

#[tokio::test]
async fn what_a_tenant_makes_is_his_own() {
    let world = World::new().await;
    for (key, other) in [(&world.own, &world.foreign), (&world.foreign, &world.own)] {
        let estate = world.estate(key).await;
        for path in [
            format!("/responses/{}", estate.response),
            format!("/responses/{}", estate.finished),
            format!("/responses/{}", estate.running),
            format!("/conversations/{}", estate.conversation),
        ] {
            assert_eq!(world.served.get_as(key, &path).await.status, 200);
            assert_eq!(world.served.get_as(other, &path).await.status, 404);
        }
    }
    let default = world.keys.add("default", "default");
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let estate = world.estate(&world.own).await;
    let path = format!("/responses/{}", estate.response);
    assert_eq!(world.served.get_as(&default, &path).await.status, 404);
}

//! `GET /responses`: the list of the caller's responses.

use haft_core::{Alongside, Owner, StoredResponse};
use haft_models::OfflineModel;
use serde_json::{Value, json};

use crate::support::{Served, Setup};

/// A server with so many responses, the oldest first; of those of one second, the least first.
async fn served_with(responses: usize) -> (Served, Vec<String>) {
    let served = Setup::of(OfflineModel::new()).serve().await;
    let mut made = Vec::new();
    for number in 0..responses {
        let body = json!({"input": format!("hi {number}")});
        let response = served.create(body).await;
        let id = response["id"].as_str().unwrap().to_owned();
        made.push((response["created_at"].as_i64().unwrap(), id));
    }
    made.sort();
    (served, made.into_iter().map(|(_, id)| id).collect())
}

fn ids(page: &Value) -> Vec<&str> {
    let data = page["data"].as_array().unwrap().iter();
    data.map(|response| response["id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn responses_are_listed_without_their_items_the_newest_first() {
    let (served, made) = served_with(3).await;
    let page = served.get("/responses").await.ok();
    let newest: Vec<&str> = made.iter().rev().map(String::as_str).collect();
    assert_eq!(ids(&page), newest);
    assert_eq!(page["object"], "list");
    assert_eq!(page["first_id"], *newest[0]);
    assert_eq!(page["last_id"], *newest[2]);
    assert_eq!(page["has_more"], false);

    let mut whole = served.stored(&page["first_id"]).await;
    assert_ne!(whole["output"], json!([]));
    whole["output"] = json!([]);
    assert_eq!(page["data"][0], whole, "all but the items");

    let oldest = served.get("/responses?order=asc").await.ok();
    assert_eq!(ids(&oldest), made);
}

#[tokio::test]
async fn a_long_list_comes_in_pages() {
    let (served, made) = served_with(5).await;
    let mut seen: Vec<String> = Vec::new();
    let mut after = String::new();
    loop {
        let page = served.get(&format!("/responses?limit=2{after}")).await.ok();
        seen.extend(ids(&page).iter().map(|id| (*id).to_owned()));
        if page["has_more"] == false {
            break;
        }
        assert_eq!(ids(&page).len(), 2);
        after = format!("&after={}", page["last_id"].as_str().unwrap());
    }
    seen.reverse();
    assert_eq!(seen, made);
}

#[tokio::test]
async fn an_empty_list_has_no_ends() {
    let (served, _) = served_with(0).await;
    let page = served.get("/responses").await.ok();
    let empty = json!({"object": "list", "data": [], "first_id": null, "last_id": null,
        "has_more": false});
    assert_eq!(page, empty);
}

#[tokio::test]
async fn what_is_no_page_is_refused_by_name() {
    let (served, _) = served_with(1).await;
    for (query, error) in [
        ("limit=0", (400, "integer_below_min_value", Some("limit"))),
        ("limit=101", (400, "decimal_above_max_value", Some("limit"))),
        ("limit=many", (400, "invalid_type", Some("limit"))),
        ("order=best", (400, "invalid_value", Some("order"))),
        ("after=resp_none", (404, "item_not_found", Some("after"))),
    ] {
        let answer = served.get(&format!("/responses?{query}")).await;
        assert_eq!(answer.error(), error, "{query}");
    }
}

#[tokio::test]
async fn deleted_unstored_and_foreign_responses_are_not_listed() {
    let (served, made) = served_with(2).await;
    served
        .create(json!({"input": "secret", "store": false}))
        .await;
    served.delete(&format!("/responses/{}", made[0])).await.ok();
    let foreign = StoredResponse {
        id: String::from("resp_foreign"),
        previous: None,
        created_at: 1,
        is_finished: true,
        resource: serde_json::value::to_raw_value(&json!({"id": "resp_foreign"})).unwrap(),
        input: Vec::new(),
        output: Vec::new(),
    };
    let owner = Owner::new("somebody else");
    let put = served
        .store
        .put_response(&owner, foreign, Alongside::default());
    put.await.unwrap();
    let page = served.get("/responses").await.ok();
    assert_eq!(ids(&page), [made[1].as_str()]);
    let answer = served.get("/responses?after=resp_foreign").await;
    assert_eq!(answer.error(), (404, "item_not_found", Some("after")));
}

#[tokio::test]
async fn one_that_cannot_be_read_does_not_hide_the_others() {
    let (served, made) = served_with(1).await;
    let damaged = StoredResponse {
        id: String::from("resp_damaged"),
        previous: None,
        created_at: 1,
        is_finished: true,
        resource: serde_json::value::to_raw_value(&json!({"id": 7})).unwrap(),
        input: Vec::new(),
        output: Vec::new(),
    };
    let owner = Owner::default();
    let put = served
        .store
        .put_response(&owner, damaged, Alongside::default());
    put.await.unwrap();
    let page = served.get("/responses").await.ok();
    assert_eq!(ids(&page), [made[0].as_str()]);
    assert_eq!(
        page["last_id"], "resp_damaged",
        "the next page goes on there"
    );
}

#[tokio::test]
async fn only_a_websocket_is_no_list() {
    let (served, made) = served_with(1).await;
    let request = served.request("GET", "/responses").header("upgrade", "h2c");
    let page = served.send(request).await.ok();
    assert_eq!(ids(&page), [made[0].as_str()]);
    let request = served.request("GET", "/responses");
    let request = request.header("upgrade", "WebSocket");
    let answer = served.send(request).await;
    assert_eq!(answer.error(), (400, "invalid_value", None));
}

//! What `tool_choice` says about tools that are held back.

use haft_core::{AllowedMode, AllowedTools, ToolChoice};
use haft_models::testing::{call, offers, say};
use serde_json::{Value, json};

use super::{outputs, query, tools};
use crate::support::{item_types, serve};

#[tokio::test]
async fn what_is_deferred_and_not_loaded_cannot_be_demanded() {
    let (served, _) = serve([]).await;
    let choice = json!({"type": "function", "name": "book_flight"});
    let body = json!({"input": "go", "tools": tools(), "tool_choice": choice});
    let answer = served.post("/responses", body).await;
    assert_eq!(answer.error(), (400, "tool_not_found", Some("tool_choice")));
    let message = answer.body["error"]["message"].as_str().unwrap();
    assert!(message.contains("deferred"), "{message}");
}

#[tokio::test]
async fn what_is_loaded_can_be_demanded() {
    let (served, model) = serve([
        call("search_tools", query("book a flight")),
        say("found it"),
        call("book_flight", json!({})),
    ])
    .await;
    let first = served
        .create(json!({"input": "go", "tools": tools()}))
        .await;
    let choice = json!({"type": "function", "name": "book_flight"});
    let body = json!({"input": "do it", "tools": tools(), "tool_choice": choice,
        "previous_response_id": first["id"]});
    let second = served.create(body).await;
    assert_eq!(second["output"][0]["name"], "book_flight");
    model.assert_finished();
}

fn allowing(names: &[&str]) -> Value {
    let tools = names.iter();
    let tools: Vec<_> = tools
        .map(|name| json!({"type": "function", "name": name}))
        .collect();
    json!({"type": "allowed_tools", "tools": tools})
}

#[tokio::test]
async fn whoever_may_call_a_deferred_tool_may_search_for_it_and_loading_permits_nothing_more() {
    let (served, model) = serve([
        call(
            "search_tools",
            json!({"query": "play music book flight", "limit": 2}),
        )
        .expect(offers(["near", "search_tools"])),
        call("play_music", json!({})),
        call("book_flight", json!({})),
    ])
    .await;
    let body = json!({"input": "go", "tools": tools(), "tool_choice": allowing(&["book_flight"])});
    let response = served.create(body).await;
    assert_eq!(
        item_types(&response),
        ["tool_search_call", "tool_search_output", "function_call"]
    );
    assert_eq!(response["output"][2]["name"], "book_flight");
    let requests = model.received();
    let told = outputs(&requests[2]);
    assert!(told[1].contains("not allowed"), "{told:?}");
    // A provider that enforces the list lets the search through.
    assert_eq!(
        requests[0].tool_choice,
        Some(ToolChoice::Allowed(AllowedTools {
            mode: AllowedMode::Auto,
            names: vec!["book_flight".to_owned(), "search_tools".to_owned()],
        }))
    );
    model.assert_finished();
}

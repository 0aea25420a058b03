//! What a client is told about searches that it asks for in a wrong way, and what it is given of odd ones.

use haft_core::ToolChoice;
use haft_models::testing::{ScriptedCall, call, calls, offers, say};
use serde_json::{Value, json};

use super::{deferred, query, tools};
use crate::support::{function, item_types, serve};
use crate::tools::echo;

/// A search that the client carries out, and what it may find.
fn own_search() -> Value {
    json!([deferred("book_flight", "Books a flight."), {"type": "tool_search", "execution": "client"}])
}

#[tokio::test]
async fn a_search_of_the_client_can_be_demanded_and_one_of_the_server_cannot() {
    let (served, model) = serve([call("tool_search", query("book"))]).await;
    let choice = json!({"type": "tool_search"});
    let body = json!({"input": "go", "tools": own_search(), "tool_choice": choice});
    let response = served.create(body).await;
    assert_eq!(item_types(&response), ["tool_search_call"]);
    let demanded = &model.received()[0].tool_choice;
    assert_eq!(*demanded, Some(ToolChoice::Function("tool_search".into())));
    let body = json!({"input": "go", "tools": tools(), "tool_choice": choice});
    let refused = served.post("/responses", body).await;
    assert_eq!(refused.error(), (400, "invalid_value", Some("tool_choice")));
    let told = refused.body["error"]["message"].as_str().unwrap();
    assert!(told.contains("`execution` `client`"), "{told}");
}

#[tokio::test]
async fn a_search_without_an_output_is_told_which_output_it_lacks() {
    let (served, _) = serve([call("tool_search", query("book"))]).await;
    let first = served
        .create(json!({"input": "go", "tools": own_search()}))
        .await;
    let body = json!({"input": "on", "tools": own_search(), "previous_response_id": first["id"]});
    let refused = served.post("/responses", body).await;
    assert_eq!(refused.error().1, "missing_tool_output");
    let told = refused.body["error"]["message"].as_str().unwrap();
    assert!(told.contains("add a `tool_search_output`"), "{told}");
}

#[tokio::test]
async fn a_client_gets_what_the_model_wrote_of_a_search_that_is_no_object() {
    let written = ScriptedCall::new("tool_search", "book a flight");
    let (served, model) = serve([calls([written])]).await;
    let response = served
        .create(json!({"input": "go", "tools": own_search()}))
        .await;
    let arguments = &response["output"][0]["arguments"];
    assert_eq!(*arguments, json!({"query": "book a flight"}));
    model.assert_finished();
}

#[tokio::test]
async fn two_that_contradict_each_other_about_who_searches_are_refused() {
    let (served, model) = serve([call("tool_search", query("book")), say("ok")]).await;
    let input = json!([
        {"type": "additional_tools", "role": "developer", "tools": own_search()},
        {"role": "user", "content": "go"},
    ]);
    let refused = served
        .post("/responses", json!({"input": input, "tools": tools()}))
        .await;
    let at = Some("input[0].tools[1].execution");
    assert_eq!(refused.error(), (400, "invalid_value", at));
    // What was said before does not bind the next request.
    let first = served.create(json!({"input": input})).await;
    let output = json!({"type": "tool_search_output", "call_id": first["output"][0]["call_id"],
        "execution": "client", "tools": []});
    let body = json!({"input": [output], "tools": tools(), "previous_response_id": first["id"]});
    let second = served.create(body).await;
    assert_eq!(item_types(&second), ["message"]);
    let shown = super::names(&model.received()[1]);
    assert!(shown.contains(&"search_tools".to_owned()), "{shown:?}");
    assert!(!shown.contains(&"tool_search".to_owned()), "{shown:?}");
}

#[tokio::test]
async fn what_is_known_by_its_type_alone_cannot_be_deferred() {
    let model = haft_models::ScriptedModel::new([say("ok")]);
    let setup = crate::support::Setup::of(model).tools([echo("echo").0]);
    let served = setup.serve().await;
    let hosted = json!([{"type": "haft:echo", "defer_loading": true}, {"type": "tool_search"}]);
    let refused = served
        .post("/responses", json!({"input": "go", "tools": hosted}))
        .await;
    let at = Some("tools[0].defer_loading");
    assert_eq!(refused.error(), (400, "invalid_value", at));
    let plain = json!([{"type": "haft:echo", "defer_loading": false}]);
    served.create(json!({"input": "go", "tools": plain})).await;
}

#[tokio::test]
async fn a_tool_is_found_by_its_name_without_the_namespace() {
    let (served, model) = serve([
        call("search_tools", query("select:list_orders")),
        say("ok").expect(offers(["search_tools", "crm__list_orders"])),
    ])
    .await;
    let crm = json!([{"type": "namespace", "name": "crm", "description": "Customers.", "tools": [
        deferred("list_orders", "Gives what was ordered."), deferred("close", "Closes a case."),
    ]}, {"type": "tool_search"}]);
    served.create(json!({"input": "go", "tools": crm})).await;
    model.assert_finished();
}

#[tokio::test]
async fn a_tool_of_a_conversation_that_cannot_be_read_is_blamed_on_the_conversation() {
    let (served, _) = serve([]).await;
    let conversation = served.post("/conversations", json!({})).await.ok();
    let id = conversation["id"].as_str().unwrap().to_owned();
    // An older server may have kept what this one does not read.
    let bad = json!({"type": "additional_tools", "id": "at_1", "status": "completed",
        "role": "developer", "tools": [{"type": "function"}]});
    let item = haft_core::StoredItem {
        id: "at_1".into(),
        json: serde_json::value::to_raw_value(&bad).unwrap(),
    };
    let owner = haft_core::Owner::default();
    let added = served.store.append_items(&owner, &id, vec![item]).await;
    added.unwrap();
    let body = json!({"input": "on", "conversation": id, "tools": [function("near")]});
    let refused = served.post("/responses", body).await;
    let param = refused.error().2.unwrap_or_default().to_owned();
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert!(param.starts_with("conversation"), "{param}");
}

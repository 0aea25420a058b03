//! What requests go on from.

use haft_core::{Alongside, Item, Owner, StoredEvent};
use haft_models::OfflineModel;
use haft_models::scripted::{ScriptedModel, fail, say};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::support::{Served, Setup, kinds};

async fn serve(model: &ScriptedModel) -> Served {
    Setup::of(model.clone()).serve().await
}

/// The outputs that the model got, by its latest request.
fn outputs(model: &ScriptedModel) -> Vec<(String, String)> {
    let requests = model.received();
    let items = requests.last().unwrap().conversation.items();
    let outputs = items.filter_map(|item| match item {
        Item::FunctionCallOutput(output) => Some((output.call_id.clone(), output.output.to_text())),
        _ => None,
    });
    outputs.collect()
}

#[tokio::test]
async fn a_conversation_without_items_is_nothing_to_answer() {
    let served = serve(&ScriptedModel::new([say("never")])).await;
    let conversation = served.post("/conversations", json!({})).await.ok();
    let body = json!({"conversation": conversation["id"]});
    let answer = served.post("/responses", body).await;
    assert_eq!(
        answer.error(),
        (400, "missing_required_parameter", Some("input"))
    );
}

#[tokio::test]
async fn calls_that_were_cut_off_need_no_output() {
    let model = ScriptedModel::new([say("ok")]);
    let served = serve(&model).await;
    let input = json!([
        {"role": "user", "content": "go"},
        {"type": "function_call", "status": "incomplete", "call_id": "a", "name": "f", "arguments": "{\"x"},
        {"type": "custom_tool_call", "status": "incomplete", "call_id": "b", "name": "c", "input": "x"},
        {"type": "tool_search_call", "status": "incomplete", "call_id": "c", "execution": "client", "arguments": {}},
        {"role": "user", "content": "again"},
    ]);
    served.create(json!({"input": input})).await;
    let cut = |id: &str| (id.to_owned(), "Not executed: output limit.".to_owned());
    assert_eq!(outputs(&model), [cut("a"), cut("b"), cut("c")]);
}

#[tokio::test]
async fn a_call_that_was_cut_off_may_have_an_output_all_the_same() {
    let model = ScriptedModel::new([say("ok")]);
    let served = serve(&model).await;
    let input = json!([
        {"role": "user", "content": "go"},
        {"type": "function_call", "status": "incomplete", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "done"},
    ]);
    served.create(json!({"input": input})).await;
    assert_eq!(outputs(&model), [("a".to_owned(), "done".to_owned())]);
}

#[tokio::test]
async fn a_response_whose_context_was_not_stored_is_not_continued_without_it() {
    let served = serve(&ScriptedModel::new([say("one"), say("never")])).await;
    let response = served.create(json!({"input": "hi"})).await;
    let owner = Owner::default();
    let id = response["id"].as_str().unwrap();
    let stored = served.store.response(&owner, id).await.unwrap();
    let mut stored = stored.unwrap();
    stored.id = "resp_late".into();
    stored.previous = Some("resp_that_only_a_socket_knew".into());
    let put = served
        .store
        .put_response(&owner, stored, Alongside::default())
        .await;
    put.unwrap();
    let body = json!({"input": "and", "previous_response_id": "resp_late"});
    let answer = served.post("/responses", body).await;
    assert_eq!(
        answer.error(),
        (
            400,
            "previous_response_not_found",
            Some("previous_response_id")
        )
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_is_free_when_a_refusal_is_read() {
    let served = serve(&ScriptedModel::new([fail(400).forever()])).await;
    let conversation = served.post("/conversations", json!({})).await.ok();
    for _ in 0..200 {
        let body = json!({"input": "hi", "conversation": conversation["id"]});
        let answer = served.post("/responses", body).await;
        assert_eq!(answer.status, 400, "{:#}", answer.body);
    }
}

#[tokio::test]
async fn a_background_answer_has_all_its_tries_at_a_schema() {
    let model = ScriptedModel::new([say("no JSON"), say(r#"{"a":1}"#)]);
    let served = serve(&model).await;
    let schema = json!({
        "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"],
        "additionalProperties": false,
    });
    let format = json!({"type": "json_schema", "name": "a", "strict": true, "schema": schema});
    let body = json!({"input": "hi", "background": true, "text": {"format": format}});
    let queued = served.create(body).await;
    let path = format!("/responses/{}", queued["id"].as_str().unwrap());
    let ended = loop {
        let response = served.get(&path).await.ok();
        if !["queued", "in_progress"].contains(&response["status"].as_str().unwrap()) {
            break response;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    assert_eq!(ended["status"], "completed", "{ended:#}");
    assert_eq!(ended["output"][0]["content"][0]["text"], r#"{"a":1}"#);
}

#[tokio::test]
async fn a_replay_gets_past_events_that_cannot_be_read() {
    let served = Setup::of(OfflineModel::new()).serve().await;
    let body = json!({"input": "hi", "background": true});
    let events = served.stream(body).await;
    let id = events[0]["response"]["id"].as_str().unwrap();
    let owner = Owner::default();
    let stored = served.store.response(&owner, id).await.unwrap();
    let mut stored = stored.unwrap();
    stored.id = "resp_damaged".into();
    let resource = stored.resource.get().replace(id, "resp_damaged");
    stored.resource = RawValue::from_string(resource).unwrap();
    let put = served
        .store
        .put_response(&owner, stored, Alongside::default())
        .await;
    put.unwrap();
    let event = |sequence_number: u64, json: Value| StoredEvent {
        sequence_number,
        json: RawValue::from_string(json.to_string()).unwrap(),
    };
    // A whole page of them.
    let mut log: Vec<_> = (0..256).map(|number| event(number, json!(7))).collect();
    log.push(event(256, json!({"type": "response.completed"})));
    let added = served.store.append_events(&owner, "resp_damaged", log);
    added.await.unwrap();
    let text = served
        .request("GET", "/responses/resp_damaged?stream=true")
        .send()
        .await
        .unwrap()
        .text();
    let text = tokio::time::timeout(std::time::Duration::from_secs(10), text).await;
    let events = crate::support::events(&text.expect("it ends").unwrap());
    assert_eq!(kinds(&events), ["response.completed"]);
}

#[tokio::test]
async fn a_page_behind_an_item_that_is_not_there_is_refused_alike_everywhere() {
    let served = Setup::of(OfflineModel::new()).serve().await;
    let conversation = served.post("/conversations", json!({})).await.ok();
    let body = json!({"input": "hi", "conversation": conversation["id"]});
    let response = served.create(body).await;
    let lists = [
        format!(
            "/responses/{}/input_items",
            response["id"].as_str().unwrap()
        ),
        format!(
            "/conversations/{}/items",
            conversation["id"].as_str().unwrap()
        ),
    ];
    for list in lists {
        let answer = served.get(&format!("{list}?after=msg_none")).await;
        assert_eq!(answer.error(), (404, "item_not_found", Some("after")));
    }
}

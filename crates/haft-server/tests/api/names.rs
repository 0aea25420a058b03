//! What the model calls tools, and what its clients call them.

use haft_core::Item;
use haft_models::scripted::{ScriptedCall, ScriptedModel, calls, say};
use serde_json::{Value, json};

use crate::support::Setup;

/// The names that the model was offered, in order, by its latest request.
fn offered(model: &ScriptedModel) -> Vec<String> {
    let requests = model.received();
    let tools = requests.last().unwrap().tools.iter();
    tools
        .map(|tool| tool.definition().name().as_str().to_owned())
        .collect()
}

/// The names of the calls that the model was reminded of, by its latest request.
fn called(model: &ScriptedModel) -> Vec<String> {
    let requests = model.received();
    let items = requests.last().unwrap().conversation.items();
    let names = items.filter_map(|item| match item {
        Item::FunctionCall(call) => Some(call.name.clone()),
        _ => None,
    });
    names.collect()
}

fn function(name: &str) -> Value {
    json!({"type": "function", "name": name})
}

/// Asks with these tools and items: what the model calls its tools, what its calls of all of them are
/// for the client, and what they are called when the client sends them back.
async fn round_trip(tools: Value, input: Vec<Value>) -> (Vec<String>, Vec<Value>, Vec<String>) {
    let looker = ScriptedModel::new([say("ok")]);
    let served = Setup::of(looker.clone()).serve().await;
    let body = json!({"tools": tools, "input": input});
    served.create(body).await;
    let names = offered(&looker);
    let answer = names.iter().map(|name| ScriptedCall::new(name, "{}"));
    let caller = ScriptedModel::new([calls(answer), say("done")]);
    let served = Setup::of(caller.clone()).serve().await;
    let response = served
        .create(json!({"tools": tools, "input": input, "store": false}))
        .await;
    let output = response["output"].as_array().unwrap().clone();
    let mut input = input;
    input.extend(output.iter().cloned());
    for call in &output {
        let call_id = &call["call_id"];
        input.push(match call["type"].as_str().unwrap() {
            "tool_search_call" => json!({
                "type": "tool_search_output", "call_id": call_id, "execution": "client",
                "tools": [],
            }),
            _ => json!({"type": "function_call_output", "call_id": call_id, "output": "ok"}),
        });
    }
    served
        .create(json!({"tools": tools, "input": input, "store": false}))
        .await;
    (names, output, called(&caller))
}

#[tokio::test]
async fn a_loaded_tool_of_a_namespace_does_not_replace_a_function_of_its_plain_name() {
    let namespace = json!({"type": "namespace", "name": "a", "tools": [function("b")]});
    let input = vec![
        json!({"type": "additional_tools", "tools": [namespace]}),
        json!({"role": "user", "content": "call both"}),
    ];
    let (names, output, again) = round_trip(json!([function("a__b")]), input).await;
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(names[0], "a__b");
    assert_eq!(
        (&output[0]["name"], &output[0]["namespace"]),
        (&json!("a__b"), &Value::Null)
    );
    assert_eq!(
        (&output[1]["name"], &output[1]["namespace"]),
        (&json!("b"), &json!("a"))
    );
    assert_eq!(again, names);
}

#[tokio::test]
async fn a_function_may_be_called_like_the_search() {
    let tools = json!([
        function("tool_search"),
        {"type": "tool_search", "execution": "client"},
    ]);
    let input = vec![json!({"role": "user", "content": "call both"})];
    let (names, output, again) = round_trip(tools, input).await;
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(output[0]["type"], "function_call");
    assert_eq!(output[0]["name"], "tool_search");
    assert_eq!(output[1]["type"], "tool_search_call");
    assert_eq!(again, names);
}

#[tokio::test]
async fn a_tool_that_is_loaded_again_keeps_its_name() {
    let namespace = json!({"type": "namespace", "name": "a", "tools": [function("b")]});
    let tools = json!([function("a__b"), namespace]);
    let input = vec![
        json!({"type": "additional_tools", "tools": [namespace]}),
        json!({"role": "user", "content": "call both"}),
    ];
    let (names, output, again) = round_trip(tools, input).await;
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(output[1]["namespace"], "a");
    assert_eq!(again, names);
}

fn deferring() -> Value {
    json!([
        {"type": "function", "name": "far", "defer_loading": true},
        {"type": "tool_search", "execution": "client"},
    ])
}

#[tokio::test]
async fn a_call_can_be_required_before_any_tool_is_loaded() {
    let search = ScriptedCall::new("tool_search", r#"{"query":"far"}"#);
    let model = ScriptedModel::new([calls([search])]);
    let served = Setup::of(model.clone()).serve().await;
    let body = json!({"tools": deferring(), "tool_choice": "required", "input": "go"});
    let response = served.create(body).await;
    assert_eq!(response["output"][0]["type"], "tool_search_call");
}

#[tokio::test]
async fn who_may_call_a_deferred_tool_may_search_for_it() {
    let search = ScriptedCall::new("tool_search", r#"{"query":"far"}"#);
    let model = ScriptedModel::new([calls([search])]);
    let served = Setup::of(model.clone()).serve().await;
    let far = [function("far")];
    let choice = json!({"type": "allowed_tools", "mode": "auto", "tools": far});
    let body = json!({"tools": deferring(), "tool_choice": choice, "input": "go"});
    let response = served.create(body).await;
    assert_eq!(response["output"][0]["type"], "tool_search_call");
}

#[tokio::test]
async fn a_deferred_tool_cannot_be_demanded() {
    let served = Setup::of(ScriptedModel::new([say("never")])).serve().await;
    // With a history, only the server can tell what is loaded.
    let first = served.create(json!({"input": "hi"})).await;
    let body = json!({
        "tools": deferring(), "tool_choice": function("far"), "input": "go",
        "previous_response_id": first["id"],
    });
    let answer = served.post("/responses", body).await;
    assert_eq!(answer.error(), (400, "tool_not_found", Some("tool_choice")));
}

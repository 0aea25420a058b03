//! The tools of this server as those of an MCP server with the label `haft`.

use std::sync::atomic::Ordering;

use haft_models::scripted::{ScriptedModel, call, say};
use serde_json::{Value, json};

use crate::support::{Setup, item_types, last};
use crate::tools::{echo, of_kind};

fn entry(more: &Value) -> Value {
    let mut entry = json!({"type": "mcp", "server_label": "haft"});
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    entry
}

#[tokio::test]
async fn hosted_tools_are_listed_and_called_like_those_of_any_server() {
    let (first, runs) = echo("echo");
    let (second, _) = echo("other");
    let model = ScriptedModel::new([
        call("haft__echo", json!({"text": "a"})),
        say("done"),
        call("haft__echo", json!({"fail": true})),
        say("sorry"),
    ]);
    let booked = of_kind("book", "air:book");
    let setup = Setup::of(model.clone()).tools([first, second, booked]);
    let served = setup.serve().await;
    let tools = json!([entry(
        &json!({"allowed_tools": ["echo"], "require_approval": "never"})
    )]);
    let events = served.stream(json!({"input": "go", "tools": tools})).await;
    let response = last(&events).clone();
    assert_eq!(
        item_types(&response),
        ["mcp_list_tools", "mcp_call", "message"]
    );
    let listed = &response["output"][0];
    assert_eq!(
        (&listed["server_label"], &listed["error"]),
        (&json!("haft"), &Value::Null)
    );
    assert_eq!(listed["tools"].as_array().unwrap().len(), 1);
    assert_eq!(listed["tools"][0]["name"], "echo");
    assert_eq!(listed["tools"][0]["input_schema"]["type"], "object");
    let called = &response["output"][1];
    assert_eq!(
        (&called["server_label"], &called["name"], &called["output"]),
        (&json!("haft"), &json!("echo"), &json!("echo: a"))
    );
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    // The list is known from then on, and a tool that fails is a call that failed.
    let body = json!({"input": "again", "tools": tools, "previous_response_id": response["id"],
        "tool_choice": {"type": "mcp", "server_label": "haft", "name": "echo"}});
    let second = served.create(body).await;
    assert_eq!(item_types(&second), ["mcp_call", "message"]);
    assert_eq!(second["output"][0]["status"], "failed");
    assert!(second["output"][0]["error"].to_string().contains("broken"));
    let asked = model.received();
    let names = |at: usize| {
        let tools = asked[at].tools.iter();
        let names = tools.map(|tool| tool.definition().name().to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(0), ["haft__echo"]);
    let choice = format!("{:?}", asked[2].tool_choice);
    assert!(choice.contains("haft__echo"), "{choice}");
    // Without a list of allowed ones all of them are there, but not those of another vendor.
    let (served, all) = {
        let (first, _) = echo("echo");
        let (second, _) = echo("other");
        let model = ScriptedModel::new([say("hi")]);
        let setup = Setup::of(model.clone()).tools([first, second, of_kind("book", "air:book")]);
        (setup.serve().await, model)
    };
    served
        .create(json!({"input": "go", "tools": [entry(&json!({}))]}))
        .await;
    assert_eq!(all.received()[0].tools.len(), 2);
}

#[tokio::test]
async fn a_request_may_ask_for_approval_of_hosted_tools() {
    let (tool, runs) = echo("echo");
    let model = ScriptedModel::new([call("haft__echo", json!({"text": "a"})), say("done")]);
    let served = Setup::of(model.clone()).tools([tool]).serve().await;
    let tools = json!([entry(&json!({"require_approval": "always"}))]);
    let first = served.create(json!({"input": "go", "tools": tools})).await;
    assert_eq!(
        item_types(&first),
        ["mcp_list_tools", "mcp_approval_request"]
    );
    let question = &first["output"][1];
    assert_eq!(
        (&question["server_label"], &question["name"]),
        (&json!("haft"), &json!("echo"))
    );
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    let yes = json!([{"type": "mcp_approval_response", "approve": true,
        "approval_request_id": question["id"]}]);
    let body = json!({"input": yes, "tools": tools, "previous_response_id": first["id"]});
    let second = served.create(body).await;
    assert_eq!(item_types(&second), ["mcp_call", "message"]);
    assert_eq!(second["output"][0]["output"], "echo: a");
    assert_eq!(second["output"][0]["approval_request_id"], question["id"]);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_label_of_this_server_cannot_be_given_to_another() {
    let served = Setup::of(ScriptedModel::new([])).serve().await;
    let tools = json!([entry(&json!({"server_url": "https://a.example/mcp"}))]);
    let body = json!({"input": "go", "tools": tools});
    let refused = served.post("/responses", body).await;
    let expected = (400, "invalid_value", Some("tools[0].server_label"));
    assert_eq!(refused.error(), expected);
}

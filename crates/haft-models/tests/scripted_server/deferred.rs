//! What providers refuse about tools that they hold back, and what they answer with them.

use haft_core::Item;
use haft_models::testing::{Pieces, Protocol, ScriptedServer, Step, say};
use serde_json::{Value, json};

use super::{post, request, stream};

#[tokio::test]
async fn what_a_provider_refuses_about_held_back_tools_is_refused() {
    let held =
        json!({"type": "function", "name": "held", "input_schema": {}, "defer_loading": true});
    let shown = json!({"type": "function", "name": "shown", "input_schema": {}});
    let mut marked = held.clone();
    marked["cache_control"] = json!({"type": "ephemeral"});
    let reference = |name: &str| json!({"type": "tool_reference", "tool_name": name});
    let result = |content: Value| {
        json!([{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c", "content": content}]}])
    };
    let found = json!([{"role": "assistant", "content": [{"type": "tool_search_tool_result",
        "tool_use_id": "s", "content": {"tool_references": [reference("gone")]}}]}]);
    let hi = json!([{"role": "user", "content": "hi"}]);
    for (protocol, tools, messages, words) in [
        (Protocol::Responses, json!([held]), &hi, "`tool_search`"),
        (
            Protocol::Messages,
            json!([held]),
            &hi,
            "all tools have `defer_loading`",
        ),
        (
            Protocol::Messages,
            json!([shown, marked]),
            &hi,
            "`cache_control`",
        ),
        (
            Protocol::Messages,
            json!([shown, held]),
            &result(json!([reference("shown")])),
            "`shown` has no definition",
        ),
        (
            Protocol::Messages,
            json!([shown, held]),
            &result(json!([reference("held"), {"type": "text", "text": "a"}])),
            "beside something else",
        ),
        (
            Protocol::Messages,
            json!([shown, held]),
            &found,
            "`gone` has no definition",
        ),
    ] {
        let server = ScriptedServer::start([say("x")]).await.unwrap();
        let mut body = request(protocol, "hi");
        body["tools"] = tools;
        if protocol == Protocol::Messages {
            body["messages"] = messages.clone();
        }
        let response = post(&server, protocol, &body).await.unwrap();
        assert_eq!(response.status(), 400, "{words}");
        let problems = server.verify().unwrap_err().problems;
        assert!(problems[0].contains(words), "{problems:?}");
    }
}

fn item(json: Value) -> Item {
    serde_json::from_value(json).unwrap()
}

async fn streamed(protocol: Protocol, step: Step) -> String {
    let server = ScriptedServer::start([step]).await.unwrap();
    stream(&server, protocol).await.0
}

#[tokio::test]
async fn a_search_of_the_provider_streams_as_recorded() {
    let asked = json!({"type": "anthropic:server_tool_use", "block": {"type": "server_tool_use",
        "id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {"query": "weather"}}});
    let text = streamed(
        Protocol::Messages,
        Step::default().item(item(asked)).pieces(Pieces::Each(10)),
    )
    .await;
    for expected in [
        r#""content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"tool_search_tool_bm25","input":{}}"#,
        r#"{"type":"input_json_delta","partial_json":"{\"query\":\""}"#,
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let asked = json!({"type": "tool_search_call", "id": "tsc_1", "execution": "server",
        "call_id": null, "status": "completed", "arguments": {"paths": ["crm"]}});
    let text = streamed(Protocol::Responses, Step::default().item(item(asked))).await;
    // Their arguments are an object from the beginning.
    assert_eq!(
        text.matches(r#""arguments":{"paths":["crm"]}"#).count(),
        3,
        "{text}"
    );
}

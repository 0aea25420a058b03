//! What is sent.

use std::sync::Arc;

use haft_core::{Item, ModelRequest, OutputFormat, Streaming, ToolChoice, ToolSpecs};
use haft_models::{CapabilityOverrides, Ollama};
use insta::assert_json_snapshot;
use serde_json::{Value, json};

use crate::common::conversation::{conversation_with_image_output, request, without_addresses};
use crate::common::events::answer_of;
use crate::common::server::{Reply, Server};
use crate::model;

fn done() -> Reply {
    Reply::ndjson("{\"message\":{\"content\":\"ok\"},\"done\":true,\"done_reason\":\"stop\"}\n")
}

async fn sent(make: impl FnOnce(Ollama) -> Ollama, mut request: ModelRequest) -> Value {
    request.conversation = without_addresses(&request.conversation);
    let server = Server::start([done()]).await;
    answer_of(&make(model(&server)), request).await.unwrap();
    let request = server.request();
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", "/api/chat")
    );
    request.json()
}

fn plain(model: Ollama) -> Ollama {
    model
}

#[tokio::test]
async fn the_whole_conversation() {
    let mut request = request();
    request.tool_choice = Some(ToolChoice::Required);
    request.parallel_tool_calls = Some(true);
    request.options.max_output_tokens = Some(500);
    request.options.reasoning_effort = Some("high".into());
    assert_json_snapshot!(sent(|model| model.context_tokens(16_384), request).await);
}

#[tokio::test]
async fn images_in_an_output_go_with_it() {
    let mut request = request();
    request.conversation = conversation_with_image_output();
    let last = |body: Value| body["messages"].as_array().unwrap().last().unwrap().clone();
    let message = last(sent(plain, request.clone()).await);
    assert_eq!(
        (&message["role"], &message["tool_name"]),
        (&json!("tool"), &json!("draw_map"))
    );
    assert_eq!(message["images"].as_array().unwrap().len(), 1);
    let blind = CapabilityOverrides {
        image_input: Some(false),
        ..CapabilityOverrides::default()
    };
    // The question is only about what tools gave.
    let entries = request.conversation.entries().iter().skip(1);
    request.conversation = entries.map(|entry| entry.item().clone()).collect();
    let message = last(sent(|model| model.with_capabilities(blind), request).await);
    assert_eq!(message["content"], "The map:\n\n[image]");
    assert!(message.get("images").is_none());
}

#[tokio::test]
async fn a_choice_is_made_by_what_is_shown() {
    let names = |body: Value| {
        let tools = body
            .get("tools")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
        assert!(
            body.get("tool_choice").is_none(),
            "there is no such member here"
        );
        tools.iter().map(name).collect::<Vec<_>>()
    };
    let mut request = request();
    request.tool_choice = Some(ToolChoice::Function("draw_map".into()));
    assert_eq!(names(sent(plain, request.clone()).await), ["draw_map"]);
    request.tool_choice = Some(ToolChoice::None);
    assert!(names(sent(plain, request.clone()).await).is_empty());
    request.tool_choice = Some(ToolChoice::allowed(["draw_map"]));
    assert_eq!(names(sent(plain, request).await).len(), 3);
}

#[tokio::test]
async fn options_are_put_together() {
    let schema = json!({"type": "object"});
    let mut request = ModelRequest {
        conversation: "hi".into(),
        output_format: Some(OutputFormat {
            name: "answer".into(),
            schema: Arc::new(schema.clone()),
            strict: true,
        }),
        ..ModelRequest::default()
    };
    request.options.stream = Streaming::Whole;
    request.options.reasoning_effort = Some("none".into());
    request.options.temperature = Some(0.0);
    let extra = json!({"options": {"seed": 1, "num_ctx": 99}, "keep_alive": "5m"});
    let body = sent(
        |model| {
            model
                .context_tokens(4_096)
                .extra(extra.as_object().unwrap().clone())
        },
        request,
    )
    .await;
    assert_eq!(
        body,
        json!({
            "model": "qwen3:8b",
            "messages": [{"role": "user", "content": "hi"}],
            "format": schema,
            "think": false,
            "options": {"num_ctx": 99, "temperature": 0.0, "seed": 1},
            "stream": false,
            "keep_alive": "5m"
        })
    );
}

#[tokio::test]
async fn past_arguments_go_back_as_objects() {
    let mut request = request();
    request.tools = ToolSpecs::default();
    request.conversation = [
        Item::function_call("a", "ping", "{\"x\": 1.0}"),
        Item::function_call("b", "ping", "{\"x\": \"cut"),
        Item::function_call_output("a", "pong"),
        Item::function_call_output("b", "pong"),
    ]
    .into_iter()
    .collect();
    let body = sent(plain, request).await;
    assert_eq!(
        body["messages"][1]["tool_calls"],
        json!([{"function": {"name": "ping", "arguments": {"x": 1.0}}},
               {"function": {"name": "ping", "arguments": {}}}])
    );
}

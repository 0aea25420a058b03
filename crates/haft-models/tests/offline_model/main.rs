//! The offline model: each rule, and messages that mean no good.

#![allow(
    clippy::expect_used,
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests, and read best with values"
)]

mod arguments;
mod hostile;
mod turns;

use std::sync::Arc;

use futures_util::StreamExt;
use haft_core::{Assembly, Item, Model, ModelEvent, ModelRequest, ModelResponse, ToolDefinition};
use haft_models::OfflineModel;
use serde_json::{Value, json};

type Tool = Arc<ToolDefinition>;

/// A tool whose properties are all required.
fn tool(name: &str, description: &str, properties: Value) -> Tool {
    let required: Vec<_> = properties.as_object().unwrap().keys().cloned().collect();
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let builder = ToolDefinition::builder(name).description(description);
    builder.parameters(schema).build().unwrap()
}

fn weather() -> Tool {
    let city = json!({"city": {"type": "string"}});
    tool("get_weather", "The weather forecast for a place", city)
}

fn add() -> Tool {
    let number = json!({"type": "number"});
    tool("add", "Add two numbers", json!({"a": number, "b": number}))
}

fn clock() -> Tool {
    tool("clock", "The current time", json!({}))
}

fn all() -> Vec<Tool> {
    vec![weather(), add(), clock()]
}

fn request(tools: Vec<Tool>, text: &str) -> ModelRequest {
    ModelRequest {
        conversation: text.into(),
        tools: tools.into_iter().collect(),
        ..ModelRequest::default()
    }
}

async fn events(request: ModelRequest) -> Vec<ModelEvent> {
    let stream = OfflineModel::new().send(request).await.unwrap();
    stream.map(Result::unwrap).collect().await
}

async fn respond(request: ModelRequest) -> ModelResponse {
    let mut assembly = Assembly::default();
    for event in events(request).await {
        assembly.add(event);
    }
    assembly.take_finished().unwrap()
}

fn calls_of(response: &ModelResponse) -> Vec<(String, Value)> {
    let calls = response.items.iter().filter_map(|item| match item {
        Item::FunctionCall(call) => Some((
            call.name.clone(),
            serde_json::from_str(&call.arguments).unwrap(),
        )),
        _ => None,
    });
    calls.collect()
}

fn text_of(response: &ModelResponse) -> String {
    response.items.iter().map(Item::text).collect()
}

async fn calls(tools: Vec<Tool>, text: &str) -> Vec<(String, Value)> {
    calls_of(&respond(request(tools, text)).await)
}

fn call(name: &str, arguments: Value) -> (String, Value) {
    (name.to_owned(), arguments)
}

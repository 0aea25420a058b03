//! The scripted model in this process: steps, expectations, pieces and faults.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

mod expectations;
mod faults;
mod json_lines;
mod steps;

use futures_util::StreamExt;
use haft_core::{
    Assembly, Model, ModelError, ModelEvent, ModelRequest, ModelResponse, ToolDefinition, ToolSpecs,
};
use haft_models::testing::ScriptedModel;
use serde_json::json;

fn asking(text: &str) -> ModelRequest {
    ModelRequest {
        conversation: text.into(),
        ..ModelRequest::default()
    }
}

fn tools(names: &[&str]) -> ToolSpecs {
    let definition = |name: &&str| {
        let builder = ToolDefinition::builder(*name).parameters(json!({"type": "object"}));
        builder.build().unwrap()
    };
    names.iter().map(definition).collect()
}

async fn events(
    model: &ScriptedModel,
    request: ModelRequest,
) -> Vec<Result<ModelEvent, ModelError>> {
    model.send(request).await.unwrap().collect().await
}

async fn answer(model: &ScriptedModel, request: ModelRequest) -> ModelResponse {
    let mut assembly = Assembly::default();
    for event in events(model, request).await {
        assembly.add(event.unwrap());
    }
    assembly.take_finished().unwrap()
}

async fn refusal(model: &ScriptedModel, request: ModelRequest) -> ModelError {
    model.send(request).await.err().unwrap()
}

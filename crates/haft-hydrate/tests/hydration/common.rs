//! The tool that most tests call, and how.

use std::sync::Arc;

use haft_core::{
    FinishReason, HydrationResult, RawArguments, ToolCall, ToolDefinition, ToolObject, dynamic_tool,
};
use haft_hydrate::{CallIds, Compile, Hydrator, PreparedTool, ValidatorCache};
use serde_json::json;

pub(crate) fn weather() -> Arc<ToolDefinition> {
    ToolDefinition::builder("get_current_weather")
        .description("Get the current weather for a location.")
        .parameters(json!({
            "type": "object",
            "properties": {
                "location": {"type": "string"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                "days": {"type": "integer"}
            },
            "required": ["location"],
            "additionalProperties": false
        }))
        .build()
        .unwrap()
}

pub(crate) fn echo(definition: Arc<ToolDefinition>) -> Arc<dyn ToolObject> {
    dynamic_tool(definition, |arguments, _| async move { Ok(arguments) })
}

pub(crate) fn table(tools: impl IntoIterator<Item = Arc<dyn ToolObject>>) -> Vec<PreparedTool> {
    let cache = ValidatorCache::default();
    tools
        .into_iter()
        .map(|tool| PreparedTool::new(tool, &cache, Compile::Early).unwrap())
        .collect()
}

pub(crate) fn hydrate(arguments: impl Into<RawArguments>) -> HydrationResult {
    hydrate_with(&Hydrator::new(), arguments)
}

pub(crate) fn repair(arguments: impl Into<RawArguments>) -> HydrationResult {
    hydrate_with(&Hydrator::new().with_audited_repair(), arguments)
}

pub(crate) fn hydrate_with(
    hydrator: &Hydrator,
    arguments: impl Into<RawArguments>,
) -> HydrationResult {
    let call = ToolCall::new("get_current_weather", arguments).finished(FinishReason::Normal);
    let tools = table([echo(weather())]);
    hydrator.hydrate(&call, &tools[..], &mut CallIds::default())
}

pub(crate) fn messages(result: &HydrationResult) -> Vec<&str> {
    result
        .errors
        .iter()
        .map(|error| error.message.as_str())
        .collect()
}

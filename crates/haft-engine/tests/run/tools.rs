//! Tools for the tests, each with a schema.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft_core::{
    Annotations, ToolDefinition, ToolError, ToolObject, ToolOutput, dynamic_tool, function_tool,
};
use serde_json::{Value, json};

/// A tool that takes `{"text": string}` and gives `run`'s answer.
pub fn tool<F>(name: &str, run: F) -> Arc<dyn ToolObject>
where
    F: Fn(String) -> Result<ToolOutput, ToolError> + Send + Sync + 'static,
{
    annotated(name, Annotations::default(), run)
}

pub fn annotated<F>(name: &str, annotations: Annotations, run: F) -> Arc<dyn ToolObject>
where
    F: Fn(String) -> Result<ToolOutput, ToolError> + Send + Sync + 'static,
{
    let definition = definition(name, annotations);
    dynamic_tool(definition, move |arguments, _| {
        let result = run(arguments["text"].as_str().unwrap_or_default().to_owned());
        async move { result }
    })
}

pub fn definition(name: &str, annotations: Annotations) -> Arc<ToolDefinition> {
    ToolDefinition::builder(name)
        .description(format!("The tool {name}."))
        .parameters(text_schema())
        .annotations(annotations)
        .build()
        .unwrap()
}

pub fn text_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "additionalProperties": false
    })
}

/// Gives back what it gets.
pub fn echo() -> Arc<dyn ToolObject> {
    tool("echo", |text| Ok(ToolOutput::text(text)))
}

/// A function of the caller.
pub fn function(name: &str) -> Arc<dyn ToolObject> {
    function_tool(definition(name, Annotations::default()))
}

/// Takes `{"text": "<milliseconds>"}`, sleeps so long and gives it back.
pub fn sleeper(name: &str) -> Arc<dyn ToolObject> {
    dynamic_tool(
        definition(name, Annotations::default()),
        |arguments, _| async move {
            let text = arguments["text"].as_str().unwrap_or_default().to_owned();
            let milliseconds = text.parse().unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            Ok(text)
        },
    )
}

/// Counts how many of its calls run at once, and the most there ever were.
#[derive(Clone, Default)]
pub struct Crowd {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Crowd {
    pub fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    pub fn tool(&self, name: &str, annotations: Annotations) -> Arc<dyn ToolObject> {
        let crowd = self.clone();
        dynamic_tool(definition(name, annotations), move |_, _| {
            let crowd = crowd.clone();
            async move {
                let now = crowd.now.fetch_add(1, Ordering::SeqCst) + 1;
                crowd.most.fetch_max(now, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(20)).await;
                crowd.now.fetch_sub(1, Ordering::SeqCst);
                Ok("done")
            }
        })
    }
}

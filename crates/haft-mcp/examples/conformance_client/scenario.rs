//! What the suite wants to see.

use std::error::Error;
use std::sync::Arc;

use haft_hydrate::JsonSchemaFactory;
use haft_mcp::{
    Answer, CallOptions, ConnectOptions, Connection, Era, Label, Question, ServerSettings, ToolDef,
    Url,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// One scenario of the suite.
pub(crate) struct Scenario {
    name: String,
    era: Era,
    url: Url,
    context: Context,
}

/// What a scenario says beside its name.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Context {
    #[serde(rename = "toolCalls")]
    tool_calls: Vec<ToolCall>,
}

#[derive(Debug, Deserialize)]
struct ToolCall {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// Takes what each form proposes.
fn proposals(_: Question) -> Answer {
    Answer::Accept(Map::new())
}

impl Scenario {
    pub(crate) fn from_environment(url: &str) -> Result<Self> {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let context = variable("MCP_CONFORMANCE_CONTEXT");
        let context = match context.as_str() {
            "" => Context::default(),
            text => serde_json::from_str(text)?,
        };
        let is_modern = variable("MCP_CONFORMANCE_PROTOCOL_VERSION").as_str() >= "2026-07-28";
        Ok(Self {
            name: variable("MCP_CONFORMANCE_SCENARIO"),
            era: if is_modern { Era::Modern } else { Era::Legacy },
            url: Url::parse(url)?,
            context,
        })
    }

    pub(crate) async fn run(self) -> Result<()> {
        let connection = self.connect().await?;
        let list = connection.list_tools().await?;
        if self.name != "initialize" && self.name != "json-schema-ref-no-deref" {
            for call in self.calls(&list.tools) {
                let options = CallOptions::default();
                let outcome = connection
                    .call_tool(&call.name, call.arguments, options)
                    .await;
                if let Err(error) = outcome {
                    connection.close().await;
                    return Err(error.into());
                }
            }
        }
        connection.close().await;
        Ok(())
    }

    async fn connect(&self) -> Result<Connection> {
        let settings = ServerSettings::http(Label::new("suite")?, self.url.clone());
        let options = ConnectOptions {
            era: Some(self.era),
            asker: Some(Arc::new(proposals)),
            validator: Some(Arc::new(JsonSchemaFactory)),
            ..ConnectOptions::default()
        };
        Ok(Connection::open(Arc::new(settings), &options).await?)
    }

    /// The calls that are wanted; every tool once if none are.
    fn calls(self, tools: &[ToolDef]) -> Vec<ToolCall> {
        if !self.context.tool_calls.is_empty() {
            return self.context.tool_calls;
        }
        let call = |tool: &ToolDef| ToolCall {
            name: tool.name.clone(),
            arguments: arguments(tool),
        };
        tools.iter().map(call).collect()
    }
}

/// Arguments that fit: something for everything that is required.
fn arguments(tool: &ToolDef) -> Map<String, Value> {
    let Ok(schema) = &tool.input_schema else {
        return Map::new();
    };
    let required = schema["required"].as_array().into_iter().flatten();
    let some = |name: &Value| {
        let name = name.as_str()?;
        let value = match schema["properties"][name]["type"].as_str() {
            Some("number" | "integer") => json!(1),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => json!("test"),
        };
        Some((name.to_owned(), value))
    };
    required.filter_map(some).collect()
}

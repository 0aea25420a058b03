//! What the suite wants to see.

use std::error::Error;
use std::sync::Arc;

use haft_hydrate::JsonSchemaFactory;
use haft_mcp::{
    Answer, CallOptions, ConnectOptions, Connection, Era, Label, OAuthClient, OAuthOptions,
    OAuthSettings, Proof, Question, Questions, Secret, ServerSettings, ToolDef, TransportSettings,
    Url,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::browser::log_in;

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
    client_id: Option<String>,
    client_secret: Option<String>,
    private_key_pem: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ToolCall {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// Where haft would be described, if the suite looked.
const DESCRIPTION: &str = "https://conformance-test.local/client-metadata.json";

/// The tools of the scenario about schemas.
const FOCAL: &str = "json_schema_2020_12_tool";
const ECHO: &str = "json_schema_echo";

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
        let mut settings = ServerSettings::http(Label::new("suite")?, self.url.clone());
        if let TransportSettings::Http(http) = &mut settings.transport {
            http.oauth = Some(OAuthSettings {
                client: self.client()?,
                scopes: Vec::new(),
                ..OAuthSettings::default()
            });
        }
        let options = ConnectOptions {
            era: Some(self.era),
            questions: Questions::By(Arc::new(proposals)),
            validator: Some(Arc::new(JsonSchemaFactory)),
            oauth: OAuthOptions {
                tokens: None,
                opener: Some(Arc::new(log_in)),
            },
            ..ConnectOptions::default()
        };
        Ok(Connection::open(Arc::new(settings), &options).await?)
    }

    /// Who haft is for the authorization server of the suite.
    fn client(&self) -> Result<OAuthClient> {
        let Context {
            client_id,
            client_secret,
            private_key_pem,
            ..
        } = &self.context;
        let secret = client_secret.clone().map(Secret::from);
        let key = private_key_pem.clone().map(Secret::from);
        let proof = match (&secret, key) {
            (_, Some(key)) => Some(Proof::Key(key)),
            (secret, None) => secret.clone().map(Proof::Secret),
        };
        let acts_for_itself = self.name.starts_with("auth/client-credentials");
        Ok(match (client_id.clone(), proof) {
            (Some(id), Some(proof)) if acts_for_itself => OAuthClient::Itself { id, proof },
            (Some(id), _) => OAuthClient::Registered { id, secret },
            (None, _) => OAuthClient::Described(Url::parse(DESCRIPTION)?),
        })
    }

    /// The calls that are wanted; every tool once if none are.
    fn calls(self, tools: &[ToolDef]) -> Vec<ToolCall> {
        if !self.context.tool_calls.is_empty() {
            return self.context.tool_calls;
        }
        // The suite wants to see what is left of a schema.
        if self.name == "json-schema-2020-12-preservation" {
            let focal = tools.iter().find(|tool| tool.name == FOCAL);
            let schema = focal.and_then(|tool| tool.input_schema.clone().ok());
            let schema = schema.as_deref().cloned().unwrap_or_default();
            return vec![ToolCall {
                name: ECHO.into(),
                arguments: Map::from_iter([("schema".to_owned(), schema)]),
            }];
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

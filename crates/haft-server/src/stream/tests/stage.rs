//! A run from a request to the last event, without HTTP.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use haft_catalog::Catalog;
use haft_core::{
    Annotations, BoxFuture, Cancel, Model, Owner, ToolDefinition, ToolError, ToolObject,
    dynamic_tool,
};
use haft_engine::LoopOptions;
use haft_mcp::{Label, McpTransport, Pool, ServerSettings, TransportError};
use haft_store::MemoryStore;
use serde_json::{Value, json};

use crate::access::{KeyLimits, Keyring, MemoryBudget, RunLine};
use crate::app::{App, Caller, ConversationLocks};
use crate::live::LiveRuns;
use crate::mcp::Patience;
use crate::models::{ModelEntry, Models};
use crate::options::ServerOptions;
use crate::plan::Plan;
use crate::sealed::SealingKeys;
use crate::stream::{Dialect, WireEvent};
use crate::wire::{CreateRequest, Door, Vocabulary};

/// What a run consists of.
pub(super) struct Stage {
    app: App,
    /// Stop the run after so many events of the stream.
    pub(super) cancel_after: Option<usize>,
}

/// What came of it.
pub(super) struct Played {
    events: Vec<WireEvent>,
}

impl Stage {
    pub(super) fn new(model: impl Model, tools: Vec<Arc<dyn ToolObject>>) -> Self {
        Self::bounded(model, tools, LoopOptions::default())
    }

    pub(super) fn bounded(
        model: impl Model,
        tools: Vec<Arc<dyn ToolObject>>,
        loop_options: LoopOptions,
    ) -> Self {
        let catalog = Catalog::new();
        for tool in tools {
            catalog.register(tool).unwrap();
        }
        let options = ServerOptions {
            loop_options,
            ..ServerOptions::default()
        };
        Self {
            app: App {
                lifetime: crate::lifetime::Lifetime::default(),
                store_health: crate::health::StoreHealth::default(),
                spill_folder: None,
                models: Models::new(vec![ModelEntry::new("scripted", model)], None).unwrap(),
                catalog,
                mcp: servers(),
                mcp_hosts: haft_mcp::HostRules::default(),
                content_hosts: haft_mcp::HostRules::default(),
                endpoints: crate::gateway::Endpoints::default(),
                mcp_unusable: Vec::new(),
                call_journal: None,
                store: Arc::new(MemoryStore::new()),
                keyring: Keyring::open(None, None, KeyLimits::default()).unwrap(),
                line: RunLine::new(1, 0, Duration::ZERO),
                memory: MemoryBudget::new(1 << 30, 0),
                loads: tokio::sync::Semaphore::new(1),
                is_local: OnceLock::new(),
                options,
                live: LiveRuns::default(),
                conversations: ConversationLocks::default(),
                keys: SealingKeys::ephemeral().unwrap(),
                watch: crate::watch::Watch::new([], crate::watch::WatchOptions::default()),
            },
            cancel_after: None,
        }
    }

    /// Runs a request, as the server would.
    pub(super) async fn play(&self, body: Value) -> Played {
        let caller = Caller {
            owner: Owner::default(),
            pass: self.app.keyring.recognise(None).unwrap(),
            dialect: Dialect::OpenResponses,
            request_id: "req_1".into(),
            watch: crate::watch::RequestWatch::default(),
            wants_vendor_events: body["stream_options"]["vendor"] == true,
        };
        let is_vendor_type = |tool_type: &str| self.app.is_vendor_type(tool_type);
        let words = Vocabulary {
            is_vendor_type: &is_vendor_type,
            schemas: &haft_hydrate::JsonSchemaFactory,
        };
        let request = CreateRequest::read(body, Door::Http, &words).unwrap();
        let context = self.app.context(&caller, &request, None).await.unwrap();
        let servers = self
            .app
            .mcp_servers(&caller, &request, &context, Patience::OfRequest)
            .await
            .unwrap();
        let planned = Plan::make(&self.app, &caller, &request, &context, &servers);
        let (plan, mut translator) = planned.unwrap();
        let mut events = translator.begin();
        for listing in &plan.opening.listings {
            events.extend(translator.add_listing(listing));
        }
        let mut run = plan.run(plan.conversation.clone().into()).start().unwrap();
        while let Some(event) = run.next().await {
            events.extend(translator.translate(event.kind));
            self.stop(&plan.cancel, events.len());
        }
        let outcome = run.finish().await;
        let finished = translator.finish(&outcome.end, &outcome.usage, 1_700_000_001);
        events.extend(finished.events);
        Played { events }
    }

    fn stop(&self, cancel: &Cancel, told: usize) {
        if self.cancel_after.is_some_and(|after| told >= after) {
            cancel.cancel();
        }
    }
}

impl Played {
    /// The events as a client of this dialect gets them.
    pub(super) fn events(&self, dialect: Dialect) -> Vec<Value> {
        let events = self.events.iter().map(|event| {
            let (kind, json) = dialect.render(&event.kind, &event.json);
            let value: Value = serde_json::from_str(&json).unwrap();
            assert_eq!(value["type"], *kind);
            value
        });
        events.collect()
    }
}

/// A server called `air`, in this process, with the tools `find` and `book`.
fn servers() -> Pool {
    let pool = Pool::builder().build();
    let settings = ServerSettings::stdio(Label::new("air").unwrap(), "unused");
    pool.add_custom(settings, Arc::new(Air)).unwrap();
    pool
}

struct Air;

impl McpTransport for Air {
    fn call<'a>(
        &'a self,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Result<Value, TransportError>> {
        Box::pin(async move {
            let tool = |name: &str| {
                json!({"name": name, "inputSchema": {"type": "object", "properties": {
                    "text": {"type": "string"}, "fail": {"type": "boolean"},
                    "wait": {"type": "integer"},
                }}})
            };
            Ok(match method {
                "initialize" => json!({"protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}}, "serverInfo": {"name": "air", "version": "1"}}),
                "tools/list" => json!({"tools": [tool("find"), tool("book")]}),
                "tools/call" => {
                    let arguments = &params["arguments"];
                    let wait = arguments["wait"].as_u64().unwrap_or(0);
                    tokio::time::sleep(Duration::from_secs(wait)).await;
                    let text = arguments["text"].as_str().unwrap_or("nothing");
                    json!({"content": [{"type": "text", "text": text}],
                        "isError": arguments["fail"] == true})
                }
                _ => {
                    return Err(TransportError::Refused {
                        code: -32601,
                        message: "unknown method".into(),
                        data: None,
                    });
                }
            })
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// A tool of this server that answers with its arguments after a while.
pub(super) fn echo(name: &str) -> Arc<dyn ToolObject> {
    echoing(name, Annotations::default())
}

/// The same, but somebody is asked before it runs.
pub(super) fn asking(name: &str) -> Arc<dyn ToolObject> {
    let extra = [("x-needs-approval".to_owned(), true.into())];
    let annotations = Annotations {
        extra: extra.into_iter().collect(),
        ..Annotations::default()
    };
    echoing(name, annotations)
}

/// The same, but it runs behind everything before it, and nothing beside it.
pub(super) fn sequential(name: &str) -> Arc<dyn ToolObject> {
    let annotations = Annotations {
        sequential: true,
        ..Annotations::default()
    };
    echoing(name, annotations)
}

fn echoing(name: &str, annotations: Annotations) -> Arc<dyn ToolObject> {
    let definition = ToolDefinition::builder(name)
        .annotations(annotations)
        .description("Gives back what it got; `fail` makes it fail, `wait` makes it slow.")
        .parameters(json!({"type": "object", "properties": {
            "text": {"type": "string"}, "fail": {"type": "boolean"}, "wait": {"type": "integer"},
        }}));
    dynamic_tool(
        definition.build().unwrap(),
        |arguments, _context| async move {
            let wait = arguments["wait"].as_u64().unwrap_or(0);
            tokio::time::sleep(Duration::from_secs(wait)).await;
            if arguments["fail"] == true {
                return Err(ToolError::new("it broke"));
            }
            Ok(arguments["text"].as_str().unwrap_or("nothing").to_owned())
        },
    )
}

/// A function of the client.
pub(super) fn function(name: &str) -> Value {
    json!({"type": "function", "name": name, "parameters": {
        "type": "object", "properties": {"text": {"type": "string"}},
    }})
}

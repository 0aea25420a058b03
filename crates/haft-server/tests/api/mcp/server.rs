//! An MCP server on loopback whose tools do what their names say, and remember what was asked.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use haft_core::Model;
use haft_mcp::{Approve, HttpKind, Label, Pool, ServerSettings, TransportSettings, Url};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::Setup;

/// A server that stops when it is dropped. Clones share everything.
#[derive(Clone)]
pub(super) struct Fake(Arc<Inner>);

struct Inner {
    address: String,
    tools: Mutex<Vec<Value>>,
    calls: Mutex<Vec<Call>>,
    lists: Mutex<usize>,
    /// What a `wait` waits for, and what tells that it does.
    go_on: Notify,
    waits: Notify,
    task: tokio::task::JoinHandle<()>,
}

/// A call as it came in.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Value,
    pub(super) headers: HeaderMap,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A tool as the server lists it.
pub(super) fn tool(name: &str) -> Value {
    json!({
        "name": name, "description": format!("Does {name}."),
        "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}},
    })
}

impl Fake {
    /// With tools of these names.
    pub(super) async fn with(names: &[&str]) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let tools = names.iter().map(|name| tool(name)).collect();
        let fake = Arc::new_cyclic(|weak: &std::sync::Weak<Inner>| {
            let router = Router::new()
                .route("/mcp", post(answer))
                .with_state(weak.clone());
            Inner {
                address,
                tools: Mutex::new(tools),
                calls: Mutex::default(),
                lists: Mutex::default(),
                go_on: Notify::new(),
                waits: Notify::new(),
                task: tokio::spawn(async move { axum::serve(listener, router).await.unwrap() }),
            }
        });
        Self(fake)
    }

    pub(super) fn origin(&self) -> &str {
        &self.0.address
    }

    pub(super) fn url(&self) -> String {
        format!("{}/mcp", self.0.address)
    }

    pub(super) fn set_tools(&self, tools: Vec<Value>) {
        *self.0.tools.lock().unwrap() = tools;
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        self.0.calls.lock().unwrap().clone()
    }

    /// The names of the tools that were called.
    pub(super) fn called(&self) -> Vec<String> {
        self.calls().into_iter().map(|call| call.name).collect()
    }

    /// How often it was asked for its tools.
    pub(super) fn lists(&self) -> usize {
        *self.0.lists.lock().unwrap()
    }

    pub(super) async fn waits(&self) {
        crate::tools::soon(&self.0.waits, std::time::Duration::from_secs(10)).await;
    }

    pub(super) fn go_on(&self) {
        self.0.go_on.notify_one();
    }

    /// How a request names it by its address.
    pub(super) fn entry(&self, label: &str) -> Value {
        json!({"type": "mcp", "server_label": label, "server_url": self.url(),
            "require_approval": "never"})
    }

    /// How an operator configures it.
    pub(super) fn settings(&self, label: &str, approve: Approve) -> ServerSettings {
        let url = Url::parse(&self.url()).unwrap();
        let mut settings = ServerSettings::http(Label::new(label).unwrap(), url);
        if let TransportSettings::Http(http) = &mut settings.transport {
            http.kind = HttpKind::Streamable;
        }
        settings.approve = approve;
        settings
    }
}

/// A server in front of this model that may reach these.
pub(super) fn setup(model: impl Model, fakes: &[&Fake]) -> Setup {
    let hosts: Vec<String> = fakes.iter().map(|fake| fake.origin().to_owned()).collect();
    Setup::of(model).options(|options| options.mcp_hosts = hosts)
}

/// The same, with servers that the operator configured.
pub(super) fn configured(model: impl Model, servers: Vec<ServerSettings>) -> Setup {
    let pool = Pool::builder().build();
    for server in servers {
        pool.add(server).unwrap();
    }
    let mut setup = Setup::of(model);
    setup.mcp = pool;
    setup
}

async fn answer(
    State(fake): State<std::sync::Weak<Inner>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Some(fake) = fake.upgrade() else {
        return StatusCode::GONE.into_response();
    };
    let message: Value = serde_json::from_slice(&body).unwrap();
    let Some(id) = message.get("id").cloned() else {
        return StatusCode::ACCEPTED.into_response();
    };
    let result = match message["method"].as_str().unwrap() {
        "initialize" => Ok(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1"},
        })),
        "ping" => Ok(json!({})),
        "tools/list" => {
            *fake.lists.lock().unwrap() += 1;
            Ok(json!({"tools": *fake.tools.lock().unwrap()}))
        }
        "tools/call" => {
            let params = &message["params"];
            let name = params["name"].as_str().unwrap().to_owned();
            let arguments = params["arguments"].clone();
            fake.calls.lock().unwrap().push(Call {
                name: name.clone(),
                arguments: arguments.clone(),
                headers,
            });
            let token = &params["_meta"]["progressToken"];
            if name == "report" {
                return reported(&id, token);
            }
            if name == "teapot" {
                return (StatusCode::IM_A_TEAPOT, "no coffee").into_response();
            }
            if name == "wait" {
                fake.waits.notify_one();
                fake.go_on.notified().await;
            }
            called(&name, &arguments)
        }
        _ => Err(json!({"code": -32601, "message": "unknown method"})),
    };
    let body = match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    };
    json_answer(&body)
}

fn json_answer(body: &Value) -> Response {
    ([("content-type", "application/json")], body.to_string()).into_response()
}

/// An answer that says how far it is before it comes.
fn reported(id: &Value, token: &Value) -> Response {
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
        "params": {"progressToken": token, "progress": 1, "total": 2, "message": "half"}});
    let result = json!({"jsonrpc": "2.0", "id": id,
        "result": {"content": [{"type": "text", "text": "reported"}]}});
    let body = format!("data: {progress}\n\ndata: {result}\n\n");
    ([("content-type", "text/event-stream")], body).into_response()
}

/// A picture of one pixel.
pub(super) const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

fn called(name: &str, arguments: &Value) -> Result<Value, Value> {
    let text = |text: String| json!({"type": "text", "text": text});
    Ok(match name {
        "fail" => json!({"content": [text("no such flight".into())], "isError": true}),
        "break" => return Err(json!({"code": -32050, "message": "out of order"})),
        "count" => json!({"content": [], "structuredContent": {"count": 3}}),
        "picture" => json!({"content": [
            text("a picture".into()),
            {"type": "image", "data": PIXEL, "mimeType": "image/png"},
        ]}),
        "both" => json!({"content": [text("one".into()), text("two".into())],
            "structuredContent": {"n": 2}}),
        _ => {
            let q = arguments["q"].as_str().unwrap_or("nothing");
            json!({"content": [text(format!("{name}: {q}"))]})
        }
    })
}

//! A server on loopback and a client for it.

use std::path::Path;
use std::sync::Arc;

use haft_catalog::Catalog;
use haft_core::{Model, Store, ToolObject};
use haft_engine::{Backoff, LoopOptions};
use haft_models::testing::{ScriptedServer, Step};
use haft_models::{Anthropic, OpenAiChat, OpenAiResponses, ScriptedModel};
use haft_server::{ModelEntry, Server, ServerOptions};
use haft_store::{MemoryStore, SqliteStore};
use serde_json::{Value, json};

use crate::legal::assert_legal;

/// A server that stops when it is dropped.
pub(crate) struct Served {
    pub(crate) base: String,
    pub(crate) store: Arc<dyn Store>,
    client: reqwest::Client,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<()>,
}

/// What a server is made of.
pub(crate) struct Setup {
    pub(crate) models: Vec<ModelEntry>,
    pub(crate) catalog: Catalog,
    pub(crate) options: ServerOptions,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) data_dir: Option<std::path::PathBuf>,
    pub(crate) mcp: haft_mcp::Pool,
    pub(crate) gateway: Option<haft_server::GatewayOptions>,
}

impl Setup {
    /// One model, called `default`. Failed requests to it are not repeated.
    pub(crate) fn of(model: impl Model) -> Self {
        Self {
            models: vec![ModelEntry::new("default", model)],
            catalog: Catalog::new(),
            options: ServerOptions {
                loop_options: LoopOptions {
                    retry: Backoff::none(),
                    ..LoopOptions::default()
                },
                ..ServerOptions::default()
            },
            store: Arc::new(MemoryStore::new()),
            data_dir: None,
            mcp: haft_mcp::Pool::builder().build(),
            gateway: None,
        }
    }

    /// Tools that the server runs by itself.
    pub(crate) fn tools(self, tools: impl IntoIterator<Item = Arc<dyn ToolObject>>) -> Self {
        for tool in tools {
            self.catalog.register(tool).unwrap();
        }
        self
    }

    pub(crate) fn options(mut self, change: impl FnOnce(&mut ServerOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Keeps everything in a file of this directory.
    pub(crate) fn on_disk(mut self, directory: &Path) -> Self {
        self.store = Arc::new(SqliteStore::open(directory.join("haft.db")).unwrap());
        self
    }

    pub(crate) async fn serve(self) -> Served {
        let mut builder = Server::builder(Arc::clone(&self.store))
            .catalog(self.catalog)
            .mcp(self.mcp)
            .options(self.options);
        if let Some(directory) = self.data_dir {
            builder = builder.data_dir(directory);
        }
        if let Some(gateway) = self.gateway {
            builder = builder.gateway(gateway);
        }
        for model in self.models {
            builder = builder.model(model);
        }
        let server = builder.build().unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stopped = async move {
                let _ = stopped.await;
            };
            server.serve(listener, stopped).await.unwrap();
        });
        Served {
            base: format!("http://{address}/v1"),
            store: self.store,
            client: client(),
            stop: Some(stop),
            task,
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }
}

/// A model with this script, and a server in front of it.
pub(crate) async fn serve(script: impl IntoIterator<Item = Step>) -> (Served, ScriptedModel) {
    let model = ScriptedModel::new(script.into_iter().collect::<Vec<_>>());
    (Setup::of(model.clone()).serve().await, model)
}

/// Which protocol the model behind the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Chat,
    Responses,
    Anthropic,
}

pub(crate) const BACKENDS: [Backend; 3] = [Backend::Chat, Backend::Responses, Backend::Anthropic];

impl Backend {
    /// The adapter for a server on loopback.
    pub(crate) fn setup(self, server: &ScriptedServer) -> Setup {
        match self {
            Self::Chat => Setup::of(
                OpenAiChat::new("backend-model")
                    .base_url(&server.base_url())
                    .api_key("secret-key"),
            ),
            Self::Responses => Setup::of(
                OpenAiResponses::new("backend-model")
                    .base_url(&server.base_url())
                    .api_key("secret-key"),
            ),
            Self::Anthropic => Setup::of(
                Anthropic::new("backend-model")
                    .base_url(&server.url())
                    .api_key("secret-key"),
            ),
        }
    }
}

/// A backend that plays a script over HTTP.
pub(crate) async fn backend(script: impl IntoIterator<Item = Step>) -> ScriptedServer {
    client();
    ScriptedServer::start(script.into_iter().collect::<Vec<_>>())
        .await
        .unwrap()
}

pub(crate) fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// An answer: its status and its body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    /// The body, if the status is 200.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{:#}", self.body);
        self.body
    }

    /// Status, code and param of an error.
    pub(crate) fn error(&self) -> (u16, &str, Option<&str>) {
        let error = &self.body["error"];
        (
            self.status,
            error["code"].as_str().unwrap_or_default(),
            error["param"].as_str(),
        )
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

impl Served {
    /// Stops it and waits until nothing of it is left; gives the store back.
    pub(crate) async fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        (&mut self.task).await.unwrap();
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        self.client.request(method, format!("{}{path}", self.base))
    }

    pub(crate) async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Answer {
            status,
            headers,
            body,
        }
    }

    /// A request with a JSON body, not sent yet.
    pub(crate) fn posting(&self, path: &str, body: &Value) -> reqwest::RequestBuilder {
        self.request("POST", path)
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(self.posting(path, &body)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.request("GET", path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(self.request("DELETE", path)).await
    }

    pub(crate) async fn create(&self, body: Value) -> Value {
        self.post("/responses", body).await.ok()
    }

    /// A stored response.
    pub(crate) async fn stored(&self, id: &Value) -> Value {
        let id = id.as_str().unwrap();
        self.get(&format!("/responses/{id}")).await.ok()
    }

    /// Asks for a stored response until it is finished.
    pub(crate) async fn settled(&self, id: &Value) -> Value {
        for _ in 0..400 {
            let response = self.stored(id).await;
            if !matches!(response["status"].as_str(), Some("queued" | "in_progress")) {
                return response;
            }
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
        panic!("{id} does not end");
    }

    /// The events of a streamed response, which must be legal.
    pub(crate) async fn stream(&self, body: Value) -> Vec<Value> {
        self.stream_with(body, &[]).await
    }

    /// The same, with headers.
    pub(crate) async fn stream_with(
        &self,
        mut body: Value,
        headers: &[(&str, &str)],
    ) -> Vec<Value> {
        body["stream"] = true.into();
        let mut request = self.posting("/responses", &body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.unwrap();
        let kind = response.headers()["content-type"].clone();
        let text = response.text().await.unwrap();
        assert_eq!(kind, "text/event-stream", "{text}");
        let events = events(&text);
        assert_legal(&events);
        events
    }
}

/// The events of a whole stream.
#[track_caller]
pub(crate) fn events(text: &str) -> Vec<Value> {
    let mut frames: Vec<&str> = text.split_terminator("\n\n").collect();
    assert_eq!(frames.pop(), Some("data: [DONE]"), "{text}");
    let frames = frames.into_iter().filter(|frame| !frame.starts_with(':'));
    frames
        .map(|frame| {
            let (event, data) = frame.split_once('\n').unwrap();
            let value: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(event.strip_prefix("event: "), value["type"].as_str());
            value
        })
        .collect()
}

/// The types of events, in order.
pub(crate) fn kinds(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect()
}

/// The response of the terminal event.
pub(crate) fn last(events: &[Value]) -> &Value {
    &events.last().unwrap()["response"]
}

/// The types of a response's items.
pub(crate) fn item_types(response: &Value) -> Vec<&str> {
    let items = response["output"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect()
}

/// A function of the client.
pub(crate) fn function(name: &str) -> Value {
    json!({"type": "function", "name": name, "description": format!("The tool {name}."),
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}})
}

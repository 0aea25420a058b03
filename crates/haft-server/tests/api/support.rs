//! A server on loopback and a client for it.

use std::sync::Arc;

use haft_catalog::Catalog;
use haft_core::{Model, Store};
use haft_server::{ModelEntry, Server, ServerOptions};
use haft_store::MemoryStore;
use serde_json::Value;

/// A server that stops when it is dropped.
pub(crate) struct Served {
    pub(crate) base: String,
    pub(crate) store: Arc<dyn Store>,
    client: reqwest::Client,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
}

/// What a server is made of.
pub(crate) struct Setup {
    pub(crate) models: Vec<ModelEntry>,
    pub(crate) catalog: Catalog,
    pub(crate) options: ServerOptions,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) data_dir: Option<std::path::PathBuf>,
}

impl Setup {
    /// One model, called `default`.
    pub(crate) fn of(model: impl Model) -> Self {
        Self {
            models: vec![ModelEntry::new("default", model)],
            catalog: Catalog::new(),
            options: ServerOptions::default(),
            store: Arc::new(MemoryStore::new()),
            data_dir: None,
        }
    }

    pub(crate) async fn serve(self) -> Served {
        let mut builder = Server::builder(Arc::clone(&self.store))
            .catalog(self.catalog)
            .options(self.options);
        if let Some(directory) = self.data_dir {
            builder = builder.data_dir(directory);
        }
        for model in self.models {
            builder = builder.model(model);
        }
        let server = builder.build().unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        tokio::spawn(async move {
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
}

impl Served {
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

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        let text = body.to_string();
        let request = self.request("POST", path);
        self.send(
            request
                .header("content-type", "application/json")
                .body(text),
        )
        .await
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

    /// The events of a streamed response, `[DONE]` demanded.
    pub(crate) async fn stream(&self, mut body: Value) -> Vec<Value> {
        body["stream"] = true.into();
        let request = self.request("POST", "/responses");
        let request = request.header("content-type", "application/json");
        let response = request.body(body.to_string()).send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        events(&response.text().await.unwrap())
    }
}

/// The events of a whole stream.
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

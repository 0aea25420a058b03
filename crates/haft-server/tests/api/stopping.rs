//! What becomes of requests when the server stops.

use std::sync::Arc;
use std::time::Duration;

use haft_core::{Owner, Store};
use haft_models::scripted::{Fault, ScriptedModel, fault, say};
use haft_server::{ModelEntry, Server, ServerOptions};
use haft_store::MemoryStore;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::support::{client, events, kinds};

/// A server whose end can be waited for.
struct Stoppable {
    address: String,
    store: Arc<dyn Store>,
    stop: oneshot::Sender<()>,
    end: JoinHandle<std::io::Result<()>>,
}

impl Stoppable {
    /// One that has no patience when it is stopped.
    async fn serve(model: ScriptedModel) -> Self {
        Self::serve_with_patience(model, Duration::from_millis(100)).await
    }

    async fn serve_with_patience(model: ScriptedModel, stop_wait: Duration) -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let options = ServerOptions {
            stop_wait,
            answer_wait: Duration::from_millis(10),
            ..ServerOptions::default()
        };
        let server = Server::builder(Arc::clone(&store))
            .model(ModelEntry::new("default", model))
            .options(options)
            .build()
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel();
        let end = tokio::spawn(server.serve(listener, async {
            let _ = stopped.await;
        }));
        Self {
            address,
            store,
            stop,
            end,
        }
    }

    /// Stops it, waits for its end, and gives what it stored.
    async fn stop(self) -> Arc<dyn Store> {
        let _ = self.stop.send(());
        self.end.await.unwrap().unwrap();
        self.store
    }

    fn create(&self, body: &Value) -> reqwest::RequestBuilder {
        let url = format!("http://{}/v1/responses", self.address);
        let request = client().post(url).body(body.to_string());
        request.header("content-type", "application/json")
    }
}

fn hanging() -> ScriptedModel {
    ScriptedModel::new([fault(Fault::Hang)])
}

async fn stored(store: &Arc<dyn Store>, id: &Value) -> Value {
    let response = store.response(&Owner::default(), id.as_str().unwrap());
    let response = response.await.unwrap().unwrap();
    assert!(response.is_finished);
    serde_json::from_str(response.resource.get()).unwrap()
}

fn assert_stopped(resource: &Value) {
    assert_eq!(resource["status"], "failed", "{resource:#}");
    assert_eq!(resource["error"]["code"], "server_error");
    let message = resource["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("the server was stopped"), "{message}");
}

#[tokio::test]
async fn a_background_response_is_left_for_the_next_server() {
    let server = Stoppable::serve(hanging()).await;
    let request = server.create(&json!({"input": "hi", "background": true}));
    let queued = request.send().await.unwrap().text().await.unwrap();
    let queued: Value = serde_json::from_str(&queued).unwrap();
    let store = server.stop().await;
    let (owner, id) = (Owner::default(), queued["id"].as_str().unwrap());
    let left = store.response(&owner, id).await.unwrap().unwrap();
    assert!(!left.is_finished);
    assert!(store.checkpoint(&owner, id).await.unwrap().is_some());
}

#[tokio::test]
async fn a_stream_is_ended_and_says_that_the_server_was_stopped() {
    let server = Stoppable::serve(hanging()).await;
    let request = server.create(&json!({"input": "hi", "stream": true}));
    let streamed = request.send().await.unwrap();
    let text = tokio::spawn(streamed.text());
    let store = server.stop().await;
    let events = events(&text.await.unwrap().unwrap());
    let last = events.last().unwrap();
    assert_eq!(kinds(&events).last(), Some(&"response.failed"));
    assert_stopped(&last["response"]);
    assert_stopped(&stored(&store, &last["response"]["id"]).await);
}

#[tokio::test]
async fn who_waits_for_a_whole_answer_gets_an_error() {
    let server = Stoppable::serve(hanging()).await;
    let answer = tokio::spawn(server.create(&json!({"input": "hi"})).send());
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.stop().await;
    let answer = answer.await.unwrap().unwrap();
    assert_eq!(answer.status(), 500);
    assert!(
        answer
            .text()
            .await
            .unwrap()
            .contains("the server was stopped")
    );
}

#[tokio::test]
async fn what_ends_in_time_is_not_cut_off() {
    let model = ScriptedModel::new([say("done").delay_ms(30)]);
    let server = Stoppable::serve_with_patience(model, Duration::from_mins(1)).await;
    let request = server.create(&json!({"input": "hi", "stream": true}));
    let streamed = request.send().await.unwrap();
    let text = tokio::spawn(streamed.text());
    server.stop().await;
    let events = events(&text.await.unwrap().unwrap());
    assert_eq!(kinds(&events).last(), Some(&"response.completed"));
}

#[tokio::test]
async fn a_websocket_is_closed() {
    let server = Stoppable::serve(hanging()).await;
    let mut socket = TcpStream::connect(&server.address).await.unwrap();
    let handshake = format!(
        "GET /v1/responses HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        server.address
    );
    socket.write_all(handshake.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"));
    server.stop().await;
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).await.unwrap();
    // A frame of type close, with the code 1001: the server goes away.
    assert_eq!((rest[0], &rest[2..4]), (0x88, &1001_u16.to_be_bytes()[..]));
}

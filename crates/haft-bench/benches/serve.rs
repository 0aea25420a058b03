//! What the server does per second: plain, streamed, stored and not, and at the end of a long chain.
//!
//! The model answers at once, in 64 pieces, so the figures are the server's own; client and server
//! share this machine. Ratios within one run are what counts. `cargo bench --bench serve`

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::{
    BoxFuture, Capabilities, FinishReason, Item, ItemKind, Model, ModelError, ModelEvent,
    ModelRequest, ModelStream, Usage,
};
use haft_server::{ModelEntry, Server};
use haft_store::SqliteStore;
use serde_json::{Value, json};

/// So many requests are under way at the same time.
const CLIENTS: usize = 16;

/// Answers at once, in pieces.
struct Fluent;

impl Model for Fluent {
    fn name(&self) -> &'static str {
        "fluent"
    }

    fn provider(&self) -> &'static str {
        "bench"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn send(&self, _: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        let mut events = vec![
            ModelEvent::Started {
                response_id: None,
                model: None,
            },
            ModelEvent::ItemStarted {
                index: 0,
                id: None,
                kind: ItemKind::Message,
            },
        ];
        let mut whole = String::new();
        for piece in 0..64 {
            let text = format!("piece {piece} ");
            whole.push_str(&text);
            events.push(ModelEvent::TextDelta { index: 0, text });
        }
        let item = Item::assistant(whole);
        events.push(ModelEvent::ItemDone { index: 0, item });
        events.push(ModelEvent::Finished {
            finish: FinishReason::Normal,
            usage: Some(Usage::default()),
        });
        let stream = futures_util::stream::iter(events.into_iter().map(Ok));
        Box::pin(async move { Ok(Box::pin(stream) as ModelStream) })
    }
}

async fn serve(folder: &std::path::Path) -> String {
    let store = SqliteStore::open(folder.join("bench.db")).unwrap();
    let server = Server::builder(Arc::new(store))
        .model(ModelEntry::new("default", Fluent))
        .build()
        .unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(server.serve(listener, std::future::pending()));
    format!("http://{address}/v1/responses")
}

async fn ask(client: &reqwest::Client, url: &str, body: &str) -> String {
    let request = client.post(url).header("content-type", "application/json");
    let response = request.body(body.to_owned()).send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.text().await.unwrap()
}

/// Requests per second.
async fn rate(url: &str, body: Value, time: Duration) -> f64 {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let body: Arc<str> = body.to_string().into();
    let start = Instant::now();
    let clients = (0..CLIENTS).map(|_| {
        let (client, url, body) = (client.clone(), url.to_owned(), Arc::clone(&body));
        tokio::spawn(async move {
            let mut count = 0_u32;
            while start.elapsed() < time {
                ask(&client, &url, &body).await;
                count += 1;
            }
            count
        })
    });
    let mut count = 0;
    for client in clients.collect::<Vec<_>>() {
        count += client.await.unwrap();
    }
    f64::from(count) / start.elapsed().as_secs_f64()
}

/// The id of the last response of a chain of so many.
async fn chain(url: &str, length: usize) -> String {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut previous = Value::Null;
    for turn in 0..length {
        let body = json!({"input": format!("turn {turn}"), "previous_response_id": previous});
        let answer: Value =
            serde_json::from_str(&ask(&client, url, &body.to_string()).await).unwrap();
        previous = answer["id"].clone();
    }
    previous.as_str().unwrap().to_owned()
}

#[tokio::main]
async fn main() {
    // `cargo test --benches` and `cargo nextest` only want to see that it starts.
    let quick = std::env::args().any(|argument| argument == "--test");
    let (time, length) = if quick {
        (Duration::from_millis(20), 3)
    } else {
        (Duration::from_secs(4), 1000)
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let url = serve(folder.path()).await;
    let mut plain = 0.0;
    for (name, body) in [
        ("plain, not stored", json!({"input": "hi", "store": false})),
        (
            "streamed, not stored",
            json!({"input": "hi", "store": false, "stream": true}),
        ),
        ("plain, stored", json!({"input": "hi"})),
        ("streamed, stored", json!({"input": "hi", "stream": true})),
    ] {
        let rate = rate(&url, body, time).await;
        if plain == 0.0 {
            plain = rate;
        }
        println!(
            "{name:>24}: {rate:8.0} per second, {:.2} of the first",
            rate / plain
        );
    }
    let last = chain(&url, length).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let body = json!({"input": "go on", "previous_response_id": last, "store": false}).to_string();
    let mut times = Vec::new();
    for _ in 0..if quick { 1 } else { 20 } {
        let start = Instant::now();
        ask(&client, &url, &body).await;
        times.push(start.elapsed());
    }
    times.sort();
    println!(
        "going on from {length} turns: {:?} (median)",
        times[times.len() / 2]
    );
}

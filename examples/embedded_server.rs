//! The server as part of a program, with a tool of the program's own: it serves, asks itself, and
//! stops.
//!
//! `cargo run -p haft-examples --example embedded_server`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::sync::Arc;

use haft::models::OfflineModel;
use haft::{json, tool};
use haft_server::{ModelEntry, Server};
use haft_store::MemoryStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The weather in a city.
#[tool(read_only)]
fn weather(city: String) -> String {
    format!("4 °C and snow in {city}")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder(Arc::new(MemoryStore::new()))
        .model(ModelEntry::new("default", OfflineModel::new()))
        .tool("acme:weather", weather)
        .build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    println!("listening on http://{address}");
    let serving = tokio::spawn(server.serve(listener, std::future::pending()));

    // Any HTTP client will do.
    let body = json!({
        "input": "What is the weather in Oslo?",
        "tools": [{"type": "acme:weather"}],
    });
    let body = body.to_string();
    let mut connection = TcpStream::connect(address).await?;
    let request = format!(
        "POST /v1/responses HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    println!("{answer}");
    assert!(answer.contains(r#""type":"acme:weather""#));
    assert!(answer.contains("snow in Oslo"));
    serving.abort();
    Ok(())
}

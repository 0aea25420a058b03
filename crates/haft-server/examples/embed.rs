//! The API as part of a program of your own: `cargo run -p haft-server --example embed -- 4141`.

use std::sync::Arc;

use haft_models::OfflineModel;
use haft_server::{ModelEntry, Server};
use haft_store::MemoryStore;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args().nth(1).unwrap_or_else(|| "0".into());
    let server = Server::builder(Arc::new(MemoryStore::new()))
        .model(ModelEntry::new("default", OfflineModel::new()))
        .build()?;
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!("listening on http://{}", listener.local_addr()?);
    server.serve(listener, std::future::pending()).await?;
    Ok(())
}

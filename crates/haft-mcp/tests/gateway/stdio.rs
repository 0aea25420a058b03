//! Two byte streams, and what else comes over them.

use haft_mcp::gateway::{Caller, Gateway};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf,
};

use crate::client::serve;
use crate::toolbox::Toolbox;

struct Wire {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: tokio::io::WriteHalf<DuplexStream>,
}

impl Wire {
    fn new(stream: DuplexStream) -> Self {
        let (read, write) = tokio::io::split(stream);
        let lines = BufReader::new(read).lines();
        Self { lines, write }
    }

    async fn send(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.write.write_all(line.as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().expect("an answer");
        serde_json::from_str(&line).unwrap()
    }
}

fn initialize() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}
    }})
    .to_string()
}

fn modern(id: u32, method: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}
    }}})
    .to_string()
}

fn gateway() -> Gateway<Toolbox> {
    Gateway::builder(Toolbox::of(&["echo"])).build().unwrap()
}

#[tokio::test]
async fn an_older_revision_is_spoken_with_those_who_know_no_other() {
    let mut wire = Wire::new(serve(&gateway(), "a"));
    wire.send(&initialize()).await;
    let answer = wire.receive().await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    wire.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    wire.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#)
        .await;
    let answer = wire.receive().await;
    let list = answer["result"].as_object().unwrap();
    assert_eq!(list.keys().collect::<Vec<_>>(), ["tools"]);
}

#[tokio::test]
async fn a_modern_client_needs_no_handshake() {
    let mut wire = Wire::new(serve(&gateway(), "a"));
    wire.send(&modern(1, "tools/list")).await;
    let answer = wire.receive().await;
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(answer["result"]["ttlMs"], 0);
    assert_eq!(answer["result"]["cacheScope"], "private");
}

#[tokio::test]
async fn a_probe_decides_nothing() {
    let mut wire = Wire::new(serve(&gateway(), "a"));
    wire.send(&modern(1, "server/discover")).await;
    let answer = wire.receive().await;
    let versions = answer["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")));
    // Somebody who knows only the handshake can still have it.
    wire.send(&initialize()).await;
    assert_eq!(
        wire.receive().await["result"]["protocolVersion"],
        "2025-06-18"
    );
}

#[tokio::test]
async fn noise_on_the_line_is_survived() {
    let mut wire = Wire::new(serve(&gateway(), "a"));
    wire.send(&modern(1, "tools/list")).await;
    wire.receive().await;
    for nothing in ["", "\u{feff}"] {
        wire.send(nothing).await;
    }
    for noise in ["not JSON", "{", "[[[[["] {
        wire.send(noise).await;
        assert_eq!(wire.receive().await["error"]["code"], -32700);
    }
    // Seventeen megabytes are rejected, not kept.
    wire.send(&"x".repeat(17 * 1024 * 1024)).await;
    assert_eq!(wire.receive().await["error"]["code"], -32600);
    wire.send(&modern(2, "tools/list")).await;
    assert_eq!(wire.receive().await["id"], 2);
}

#[tokio::test]
async fn a_client_that_leaves_before_it_said_anything_is_no_error() {
    let (client, server) = tokio::io::duplex(1024);
    drop(client);
    let (read, write) = tokio::io::split(server);
    let ended = gateway().serve_stdio(read, write, Caller::local()).await;
    assert_eq!(ended, Ok(()));
}

#[tokio::test]
async fn a_client_that_starts_with_nonsense_is_told_apart() {
    let (client, server) = tokio::io::duplex(1024);
    let (read, write) = tokio::io::split(server);
    let mut wire = Wire::new(client);
    wire.send(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    let ended = gateway().serve_stdio(read, write, Caller::local()).await;
    let error = ended.unwrap_err().to_string();
    assert!(
        error.starts_with("the client cannot be served: "),
        "{error}"
    );
}

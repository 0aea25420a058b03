//! MCP servers: their tools in a catalogue, called by a model like any other tool.
//!
//! A real server is a program or an address, `ServerSettings::stdio(label, "npx").args([…])` or
//! `ServerSettings::http(label, url)`. This example brings its own, over a transport of its own, so that
//! it runs as it stands.
//!
//! `cargo run -p haft-examples --example mcp_servers`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use haft::mcp::{Label, McpTransport, Pool, ServerSettings, TransportError, TransportSettings};
use haft::testing::{ScriptedModel, call, offers, output_says, say};
use haft::{BoxFuture, Catalog, Value, json};

/// A server in this process: it knows how many lamps there are.
struct Shop;

impl McpTransport for Shop {
    fn call<'a>(
        &'a self,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Result<Value, TransportError>> {
        Box::pin(async move {
            match method {
                "initialize" => Ok(json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "shop", "version": "1"},
                })),
                "tools/list" => Ok(json!({"tools": [{
                    "name": "stock",
                    "description": "The stock of an article.",
                    "inputSchema": {
                        "type": "object",
                        "properties": {"article": {"type": "string"}},
                        "required": ["article"],
                    },
                }]})),
                "tools/call" => {
                    let article = &params["arguments"]["article"];
                    let text = format!("there are 3 of {article}");
                    Ok(json!({"content": [{"type": "text", "text": text}]}))
                }
                _ => Err(TransportError::Refused {
                    code: -32601,
                    message: "no such method".into(),
                    data: None,
                }),
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let pool = Pool::builder().build();
    let settings = ServerSettings::new(Label::new("shop")?, TransportSettings::Custom);
    pool.add_custom(settings, Arc::new(Shop))?;

    // The catalogue follows the servers for as long as `offering` lives. Asking them for their tools
    // starts them; without it they are started by the first call of a tool that is known from before.
    let catalog = Catalog::new();
    let offering = pool.offer_in(&catalog);
    offering.ask_all(Duration::from_secs(30)).await;
    for tool in catalog.list() {
        println!("{}: {}", tool.name(), tool.brief());
    }

    let model = ScriptedModel::new([
        call("shop__stock", json!({"article": "lamp"})).expect(offers(["shop__stock"])),
        say("Three.").expect(output_says("there are 3 of \"lamp\"")),
    ]);
    let binding = catalog.snapshot().bind().build()?;
    let outcome = haft::run(model.clone())
        .binding(binding)
        .user("How many lamps are there?")
        .await?;
    println!("{}", outcome.text);
    model.assert_finished();
    pool.close().await;
    Ok(())
}

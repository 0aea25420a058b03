//! The gateway with a backend that has everything that the protocol's conformance suite asks for by
//! name. `scripts/mcp-conformance` starts it and lets the suite loose on it.
//!
//! `PORT` names the port; without it, or with `0`, the system chooses one. The address is printed.

#![allow(clippy::print_stdout)]

mod fixture;
mod inputs;
mod others;
mod tools;

use std::error::Error;

use axum::Router;
use axum::serve::ListenerExt as _;
use haft_mcp::gateway::{Caller, Gateway, HttpOptions, Mode};
use tokio::net::TcpListener;

use fixture::Fixture;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::var("PORT").unwrap_or_else(|_| "0".into());
    let listener = TcpListener::bind(("127.0.0.1", port.parse()?)).await?;
    // All fixtures are listed: the suite looks for them by name.
    let gateway = Gateway::builder(Fixture::new())
        .mode(Mode::Passthrough)
        .build()?;
    let options = HttpOptions::default().anonymous(Caller::new("suite"));
    println!("listening on http://{}/mcp", listener.local_addr()?);
    let router = Router::new().route("/mcp", gateway.http(options));
    // Without it every answer waits for the client's delayed acknowledgement, 40 ms.
    let listener = listener.tap_io(|io| {
        let _ = io.set_nodelay(true);
    });
    axum::serve(listener, router).await?;
    Ok(())
}

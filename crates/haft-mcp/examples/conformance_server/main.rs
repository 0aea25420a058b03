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
    axum::serve(listener, router).await?;
    Ok(())
}

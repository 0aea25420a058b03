//! The client under the conformance suite of the Model Context Protocol (`scripts/mcp-conformance`).
//!
//! It does what any program with haft's client does: connects, lists, calls, and leaves. What it is
//! to do comes in variables: `MCP_CONFORMANCE_SCENARIO`, `MCP_CONFORMANCE_PROTOCOL_VERSION` and
//! `MCP_CONFORMANCE_CONTEXT`.

#![allow(clippy::print_stderr, reason = "it is a program")]

mod browser;
mod scenario;

use std::process::ExitCode;
use std::time::Duration;

use scenario::Scenario;

/// The suite gives up after thirty seconds.
const LIMIT: Duration = Duration::from_secs(25);

#[tokio::main]
async fn main() -> ExitCode {
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: conformance_client URL");
        return ExitCode::from(2);
    };
    // For the browser; haft itself needs none.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let run = async { Scenario::from_environment(&url)?.run().await };
    match tokio::time::timeout(LIMIT, run).await {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            eprintln!("conformance_client: {error}");
            ExitCode::FAILURE
        }
        Err(_) => {
            eprintln!("conformance_client: not done after {} s", LIMIT.as_secs());
            ExitCode::FAILURE
        }
    }
}

//! What a gateway adds to a call: the same tool is called at its own server and through a gateway, turn by
//! turn, and the times of both are printed. `scripts/mcp-latency` runs it.
//!
//! Usage: `latency SERVER_URL TOOL GATEWAY_URL TOOL [CALLS]`

#![allow(clippy::print_stdout, reason = "it prints figures")]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_mcp::{CallOptions, ConnectOptions, Connection, Label, ServerSettings, Url};
use serde_json::Map;

const WARM_UP: usize = 200;

struct End {
    connection: Connection,
    tool: String,
    times: Vec<Duration>,
}

impl End {
    async fn open(label: &str, url: &str, tool: &str) -> Result<Self, Box<dyn Error>> {
        let settings = ServerSettings::http(Label::new(label)?, Url::parse(url)?);
        let connection = Connection::open(Arc::new(settings), &ConnectOptions::default()).await?;
        Ok(Self {
            connection,
            tool: tool.into(),
            times: Vec::new(),
        })
    }

    async fn call(&mut self) -> Result<(), Box<dyn Error>> {
        let started = Instant::now();
        let called = self
            .connection
            .call_tool(&self.tool, Map::new(), CallOptions::default());
        let outcome = called.await?;
        self.times.push(started.elapsed());
        if outcome.is_error {
            return Err(format!("`{}` failed: {}", self.tool, outcome.raw).into());
        }
        Ok(())
    }

    /// The time below which this many of a thousand calls stay, in microseconds.
    fn below(&mut self, permille: usize) -> u128 {
        self.times.sort_unstable();
        let at = self.times.len() * permille / 1000;
        self.times
            .get(at)
            .map_or(0, |time| time.as_nanos().div_ceil(1000))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, tool, gateway, exposed, rest @ ..] = arguments.as_slice() else {
        return Err("usage: latency SERVER_URL TOOL GATEWAY_URL TOOL [CALLS]".into());
    };
    let calls: usize = rest.first().map_or(Ok(5_000), |calls| calls.parse())?;
    let mut direct = End::open("direct", server, tool).await?;
    let mut through = End::open("gateway", gateway, exposed).await?;
    for number in 0..calls + WARM_UP {
        if number == WARM_UP {
            direct.times.clear();
            through.times.clear();
        }
        direct.call().await?;
        through.call().await?;
    }
    for permille in [500, 990] {
        let (one, other) = (direct.below(permille), through.below(permille));
        let added = i128::try_from(other)? - i128::try_from(one)?;
        println!(
            "p{}: {one} µs at the server, {other} µs through the gateway: {added} µs added",
            permille / 10
        );
    }
    Ok(())
}

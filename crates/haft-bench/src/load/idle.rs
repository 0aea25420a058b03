//! What a stream takes of a server's memory while nothing happens on it.

use std::io::{self, Write as _};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::case::request;
use crate::process::memory;
use crate::script::STALLING;
use crate::target::TargetArgument;
use crate::wire::Wire;

/// How many streams are opened at the same time.
const AT_ONCE: usize = 50;

/// How long a stream may take to begin.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// How long the server may take to come to rest.
const REST: Duration = Duration::from_secs(2);

/// Opens streams whose backend goes silent after its first event, and prints what each takes.
pub(crate) async fn measure(server: TargetArgument, streams: usize) -> Result<()> {
    // What every server makes for its first request is not the streams'.
    drop(open(server, AT_ONCE).await?);
    sleep(REST).await;
    let before = memory(server.process)?;
    let mut wires = Vec::new();
    while wires.len() < streams {
        let more = (streams - wires.len()).min(AT_ONCE);
        wires.extend(open(server, more).await?);
    }
    sleep(REST).await;
    let with = memory(server.process)?;
    let each = with.saturating_sub(before) / u64::try_from(streams)?.max(1);
    let (before, with) = (before >> 20, with >> 20);
    #[allow(clippy::cast_precision_loss, reason = "some kilobytes")]
    let each = each as f64 / 1024.0;
    writeln!(
        io::stdout(),
        "{streams} idle streams: {each:.1} KB each ({before} MB before, {with} MB with them)"
    )?;
    drop(wires);
    sleep(REST).await;
    let after = memory(server.process)? >> 20;
    writeln!(io::stdout(), "after they have gone: {after} MB")?;
    Ok(())
}

async fn open(server: TargetArgument, count: usize) -> Result<Vec<Wire>> {
    let body = json!({"model": STALLING, "input": "Hello?", "store": false, "stream": true});
    let request = request(&body);
    let mut wires = Vec::new();
    for _ in 0..count {
        let mut wire = Wire::new(TcpStream::connect(server.address).await?)?;
        wire.send(&request).await?;
        wires.push(wire);
    }
    for wire in &mut wires {
        let begun = wire.wait_for(b"response.created");
        let begun = timeout(MAX_WAIT, begun).await;
        begun.context("a stream does not begin")??;
    }
    Ok(wires)
}

/// Prints what a process takes of memory.
pub(crate) fn print_memory(process: u32) -> Result<()> {
    #[allow(clippy::cast_precision_loss, reason = "some megabytes")]
    let megabytes = memory(process)? as f64 / 1024.0 / 1024.0;
    writeln!(io::stdout(), "{megabytes:.1}")?;
    Ok(())
}

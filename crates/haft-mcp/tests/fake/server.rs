//! The hostile server on standard input and output. See `brain.rs` for what it can do.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stderr,
    unreachable_pub
)]

mod asking;
mod brain;
mod offers;
mod tasks;
mod words;

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

use brain::{Brain, Sink};

fn main() {
    let brain = Brain::new(std::env::args().skip(1));
    let sink: Sink = Arc::new(|line| {
        let mut out = std::io::stdout().lock();
        // Whoever reads may have gone.
        let _ = out
            .write_all(&line)
            .and_then(|()| out.write_all(b"\n"))
            .and_then(|()| out.flush());
    });
    if let Some(file) = brain.said("starts-in") {
        let mut starts = std::fs::OpenOptions::new();
        let mut starts = starts.append(true).create(true).open(file).unwrap();
        writeln!(starts, "{}", std::process::id()).unwrap();
    }
    if brain
        .said("missing")
        .is_some_and(|file| std::path::Path::new(file).exists())
    {
        eprintln!("not now");
        std::process::exit(7);
    }
    if brain.has("exits-at-once") {
        eprintln!("no license found");
        std::process::exit(7);
    }
    if brain.has("banner") {
        sink(b"Welcome to the fake server 1.0".to_vec());
        sink(b"{\"level\":\"info\",\"message\":\"ready\"}".to_vec());
    }
    let hangs = brain.said("hangs-if");
    let hangs = hangs.is_some_and(|file| std::path::Path::new(file).exists());
    if hangs || brain.has("never-reads") {
        std::thread::sleep(Duration::from_secs(1000));
    }
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if let Ok(message) = serde_json::from_str(&line) {
            brain.hear(&message, &sink);
        }
    }
    if brain.has("deaf") {
        std::thread::sleep(Duration::from_secs(1000));
    }
}

//! The small MCP server as a process. A first argument is a file that it writes its number to.

#![allow(missing_docs, clippy::unwrap_used, unreachable_pub)]

mod brain;

use std::io::{BufRead as _, Write as _};

fn main() {
    if let Some(file) = std::env::args().nth(1) {
        std::fs::write(file, std::process::id().to_string()).unwrap();
    }
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str(&line) else {
            continue;
        };
        if let Some(answer) = brain::answer(&message) {
            let mut out = std::io::stdout().lock();
            // Whoever reads may have gone.
            let _ = writeln!(out, "{answer}").and_then(|()| out.flush());
        }
    }
}

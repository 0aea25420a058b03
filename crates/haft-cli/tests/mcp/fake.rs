//! The hostile server of `haft-mcp`, as a test of this crate that is not run: so that the tests need no
//! binary of another crate. What the harness writes around it is noise, which haft does not mind.

#[allow(dead_code, clippy::print_stderr, unreachable_pub)]
#[path = "../../../haft-mcp/tests/fake/asking.rs"]
mod asking;
#[allow(dead_code, clippy::print_stderr, unreachable_pub)]
#[path = "../../../haft-mcp/tests/fake/brain.rs"]
mod brain;
#[allow(dead_code, clippy::print_stderr, unreachable_pub)]
#[path = "../../../haft-mcp/tests/fake/offers.rs"]
mod offers;
#[allow(dead_code, clippy::print_stderr, unreachable_pub)]
#[path = "../../../haft-mcp/tests/fake/tasks.rs"]
mod tasks;
#[allow(dead_code, clippy::print_stderr, unreachable_pub)]
#[path = "../../../haft-mcp/tests/fake/words.rs"]
mod words;

use std::io::{BufRead, Write};
use std::sync::Arc;

use brain::{Brain, Sink};

/// The variable that tells it what to do.
pub(crate) const WORDS: &str = "FAKE_WORDS";

#[test]
#[ignore = "it is started by others, as a server"]
fn server() {
    let words = std::env::var(WORDS).unwrap_or_default();
    let brain = Brain::new(words.split_whitespace());
    let sink: Sink = Arc::new(|line| {
        let mut out = std::io::stdout().lock();
        // Whoever reads may have gone.
        let _ = out
            .write_all(&line)
            .and_then(|()| out.write_all(b"\n"))
            .and_then(|()| out.flush());
    });
    if let Some(file) = brain.said("notes-start") {
        std::fs::write(file, std::process::id().to_string()).unwrap();
    }
    if let Some(wait) = brain.said("sleeps-first") {
        std::thread::sleep(std::time::Duration::from_millis(wait.parse().unwrap()));
    }
    if brain.has("exits-at-once") {
        eprintln!("no license found");
        std::process::exit(7);
    }
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if let Ok(message) = serde_json::from_str(&line) {
            brain.hear(&message, &sink);
        }
    }
    if brain.has("deaf") {
        std::thread::sleep(std::time::Duration::from_secs(1000));
    }
}

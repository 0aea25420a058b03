//! Concerto with the real binary: programs that are checked, compiled, formatted, run, tested and tried
//! out, and their tools behind the server and the gateway.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::needless_pass_by_value,
    reason = "tests read better with `json!` where it is used"
)]

#[path = "../support/mod.rs"]
mod support;

mod beginning;
mod compiling;
mod formatting;
mod hints;
mod kit;
mod models;
mod repl;
mod running;
mod served;
mod servers;
mod testing;

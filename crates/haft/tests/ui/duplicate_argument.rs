#![allow(unused_variables)]

/// Twice.
#[haft::tool(read_only, title = "A", read_only)]
fn twice() {}

/// Both.
#[haft::tool(timeout = "1s", timeout_ms = 1000)]
fn both() {}

/// Default.
#[haft::tool]
fn defaults(#[tool(default = 1)] #[tool(default = 2)] a: u8) {}

fn main() {}

//! A timeout has a unit.

/// Wait.
#[haft::tool(timeout = 30)]
fn wait() {}

fn main() {}

/// Unit.
#[haft::tool(timeout = "30")]
fn unit() {}

/// Zero.
#[haft::tool(timeout = "0s")]
fn zero() {}

/// Milliseconds.
#[haft::tool(timeout_ms = 0)]
fn milliseconds() {}

fn main() {}

//! A default needs a value.

/// Wait.
#[haft::tool]
fn wait(#[tool(default)] seconds: u8) -> u8 {
    seconds
}

fn main() {}

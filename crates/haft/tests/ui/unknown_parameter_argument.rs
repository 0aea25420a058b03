#![allow(unused_variables)]

/// Unknown.
#[haft::tool]
fn unknown(#[tool(rename = "b")] a: u8) {}

fn main() {}

#![allow(unused_variables)]

/// Anything.
#[haft::tool(no_schema = "yes")]
fn anything(any: haft::Value) {}

fn main() {}

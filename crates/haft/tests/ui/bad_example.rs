#![allow(unused_variables)]

/// Input.
#[haft::tool(example(input = "Oslo"))]
fn input(city: String) {}

/// Missing.
#[haft::tool(example(output = 1))]
fn missing(city: String) {}

/// Other.
#[haft::tool(example(inputs = {"city": "Oslo"}))]
fn other(city: String) {}

fn main() {}

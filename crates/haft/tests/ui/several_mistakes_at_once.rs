#![allow(unused_variables)]

#[haft::tool(timeout = "1 s", brief = "")]
fn attribute() {}

#[haft::tool]
unsafe fn pick_tools<T>(text: &str, (a, b): (u8, u8)) {}

fn main() {}

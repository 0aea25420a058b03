#![allow(unused_variables)]

use haft::ToolContext;

/// Twice.
#[haft::tool]
fn twice(first: &ToolContext, second: &haft::ToolContext) {}

fn main() {}

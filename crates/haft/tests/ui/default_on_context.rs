#![allow(unused_variables)]

use haft::ToolContext;

/// Default.
#[haft::tool]
fn with_default(#[tool(default = ToolContext::default())] ctx: &ToolContext) {}

/// Renamed.
#[haft::tool]
fn renamed(#[serde(rename = "context")] ctx: &ToolContext) {}

fn main() {}

#![allow(unused_variables)]

use haft::ToolContext;

/// Owned.
#[haft::tool]
fn owned(ctx: ToolContext) {}

/// Mutable.
#[haft::tool]
fn mutable(ctx: &mut ToolContext) {}

/// Forever.
#[haft::tool]
fn forever(ctx: &'static ToolContext) {}

fn main() {}

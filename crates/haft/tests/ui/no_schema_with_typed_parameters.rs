#![allow(unused_variables)]

use haft::Value;

/// Typed.
#[haft::tool(no_schema = "full")]
fn typed(city: String) {}

/// Two.
#[haft::tool(no_schema = "full")]
fn two(first: Value, second: Value) {}

/// None.
#[haft::tool(no_schema = "full")]
fn none(ctx: &haft::ToolContext) {}

/// Attributes.
#[haft::tool(no_schema = "full")]
fn attributes(#[serde(rename = "x")] #[tool(default = Value::Null)] any: Value) {}

fn main() {}

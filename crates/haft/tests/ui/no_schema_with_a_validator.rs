#![allow(unused_variables)]

use std::sync::Arc;

fn validator() -> Arc<dyn haft::Validator> {
    unimplemented!()
}

/// Anything.
#[haft::tool(no_schema = "full", validator = validator)]
fn anything(any: haft::Value) {}

fn main() {}

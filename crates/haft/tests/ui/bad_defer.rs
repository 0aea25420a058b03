#![allow(unused_variables)]

/// As a flag would be.
#[haft::tool(defer = true)]
fn as_a_flag(text: String) {}

/// Without a word.
#[haft::tool(defer)]
fn without_a_word(text: String) {}

/// With another one.
#[haft::tool(defer = "sometimes")]
fn with_another_word(text: String) {}

fn main() {}

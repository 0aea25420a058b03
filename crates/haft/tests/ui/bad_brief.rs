/// Long.
#[haft::tool(brief = "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890")]
fn long() {}

/// Lines.
#[haft::tool(brief = "one\ntwo")]
fn lines() {}

/// Nothing.
#[haft::tool(brief = " ")]
fn nothing() {}

fn main() {}

/// Unknown.
#[haft::tool(readonly)]
fn unknown() {}

/// Described.
#[haft::tool(description = "Described.")]
fn described() {}

/// Examples.
#[haft::tool(examples = [])]
fn examples() {}

fn main() {}

/// Tags.
#[haft::tool(tags = "weather")]
fn tags() {}

/// Depends.
#[haft::tool(depends_on = ["not a name"])]
fn depends() {}

fn main() {}

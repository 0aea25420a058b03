/// Pick.
#[haft::tool]
fn pick_tools() {}

/// Search.
#[haft::tool(name = "search_tools")]
fn search() {}

/// Call.
#[haft::tool]
struct CallTool;

fn main() {}

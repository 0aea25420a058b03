/// Pair.
#[haft::tool]
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pair(u8, u8);

fn main() {}

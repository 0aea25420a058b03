/// Repeat.
#[haft::tool]
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Repeat {
    #[tool(default = 2)]
    times: u8,
}

fn main() {}

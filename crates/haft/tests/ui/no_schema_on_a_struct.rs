/// Struct.
#[haft::tool(no_schema = "full")]
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Struct {
    field: u8,
}

fn main() {}

/// Either.
#[haft::tool]
#[derive(serde::Deserialize, schemars::JsonSchema)]
enum Either {
    Left,
    Right,
}

fn main() {}

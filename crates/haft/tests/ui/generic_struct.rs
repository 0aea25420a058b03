/// Echo.
#[haft::tool]
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo<T> {
    value: T,
}

fn main() {}

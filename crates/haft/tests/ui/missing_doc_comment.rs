#[haft::tool]
fn silent() {}

///
#[haft::tool]
fn blank() {}

#[haft::tool]
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Silent {
    /// The field speaks, the tool does not
    field: u8,
}

fn main() {}

/// Unnamed.
#[haft::tool(output_schema)]
fn unnamed() -> Result<impl serde::Serialize, String> {
    Ok(1)
}

fn main() {}

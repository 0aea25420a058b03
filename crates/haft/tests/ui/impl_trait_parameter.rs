/// Show.
#[haft::tool]
fn show(value: impl std::fmt::Display) -> String {
    value.to_string()
}

fn main() {}

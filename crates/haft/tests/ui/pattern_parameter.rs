/// Add.
#[haft::tool]
fn add((a, b): (u8, u8), _: u8) -> u8 {
    a + b
}

/// Borrow.
#[haft::tool]
fn borrow(ref text: String) -> usize {
    text.len()
}

fn main() {}

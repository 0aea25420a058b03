/// Peek.
#[haft::tool]
unsafe fn peek(address: usize) -> usize {
    address
}

fn main() {}

struct Counter;

impl Counter {
    /// Count.
    #[haft::tool]
    fn count(&self) -> u8 {
        1
    }
}

fn main() {}

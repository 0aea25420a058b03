/// Bits.
#[haft::tool]
union Bits {
    float: f32,
    integer: u32,
}

fn main() {}

/// Constant.
#[haft::tool]
const fn constant() -> u8 {
    1
}

/// Foreign.
#[haft::tool]
extern "C" fn foreign() -> u8 {
    1
}

fn main() {}

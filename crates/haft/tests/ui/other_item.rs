struct Counter;

/// Impl.
#[haft::tool]
impl Counter {}

/// Module.
#[haft::tool]
mod module {}

/// Trait.
#[haft::tool]
trait Trait {}

/// Alias.
#[haft::tool]
type Alias = u8;

fn main() {}

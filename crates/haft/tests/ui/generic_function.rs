/// Echo.
#[haft::tool]
fn echo<T>(value: T) -> T {
    value
}

/// Borrow.
#[haft::tool]
fn borrow<'a>(ctx: &'a haft::ToolContext) -> &'a str {
    ctx.call_id()
}

/// Where.
#[haft::tool]
fn bounded(value: u8) -> u8
where
    u8: Copy,
{
    value
}

fn main() {}

#![allow(unused_variables)]

use std::borrow::Cow;
use std::path::Path;

/// Count.
#[haft::tool]
fn count(
    text: &str,
    list: &[u8],
    path: &Path,
    number: &mut u64,
    maybe: Option<&str>,
    cow: Cow<'_, str>,
) -> usize {
    text.len()
}

fn main() {}

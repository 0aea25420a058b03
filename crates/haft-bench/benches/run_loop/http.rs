//! placeholder
pub(crate) fn print(_: bool) {}

//! What providers send, as far as it is read here.

pub(crate) mod anthropic;
pub(crate) mod responses;

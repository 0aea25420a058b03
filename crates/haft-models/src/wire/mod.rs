//! What providers send, as they send it.
//!
//! Servers differ in what they leave out, send as `null` or send as something else. Members are
//! read one by one: what has an unexpected type is not there, and the rest counts.

pub(crate) mod anthropic;
pub(crate) mod chat;
mod logprobs;
pub(crate) mod ollama;
pub(crate) mod responses;
mod text;

pub(crate) use logprobs::logprobs;
pub(crate) use text::{Text, arguments, read, text, usage};

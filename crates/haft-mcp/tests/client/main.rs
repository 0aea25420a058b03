//! One connection against servers that behave, and servers that do not.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../fake/asking.rs"]
#[allow(unreachable_pub)]
mod asking;
#[path = "../fake/brain.rs"]
#[allow(unreachable_pub, clippy::print_stderr)]
mod brain;
mod callers;
mod calls;
mod custom;
mod guarded;
mod http;
mod kit;
mod lists;
mod logs;
mod oauth;
#[path = "../fake/offers.rs"]
#[allow(unreachable_pub)]
mod offers;
mod opening;
mod outputs;
mod processes;
mod questions;
mod rights;
mod sse;
mod task_calls;
#[path = "../fake/tasks.rs"]
#[allow(unreachable_pub)]
mod tasks;
mod web;
#[path = "../fake/words.rs"]
#[allow(unreachable_pub)]
mod words;

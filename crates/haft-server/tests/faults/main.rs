//! What becomes of requests when the backend misbehaves: every fault, through every adapter, at every
//! door. Each ends with its status, its code and its events in order, tells no secret, and leaves
//! nothing behind.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod adapter;
mod backend;
mod chat;
mod door;
mod expected;
#[path = "../../src/stream/legal.rs"]
#[allow(dead_code, reason = "the other tests use all of it")]
mod legal;
mod log;
mod matrix;
mod remedies;
#[path = "../api/support.rs"]
#[allow(dead_code, reason = "the other tests use all of it")]
mod support;
mod tls;

/// The key of every backend. Most of the faulty ones repeat it in what they say.
pub(crate) const KEY: &str = "sk-hunter2-hunter2-hunter2";

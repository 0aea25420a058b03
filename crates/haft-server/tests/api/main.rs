//! The API over real HTTP, with a scripted model behind it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod defects;
mod errors;
#[path = "../../src/stream/legal.rs"]
mod legal;
mod plain;
mod raw;
mod state;
mod streaming;
mod support;
mod tools;
mod websocket;

//! The API over real HTTP, with a scripted model behind it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

<<<<<<< HEAD
mod breaks;
mod chat;
mod compaction;
mod contexts;
mod names;
mod plain;
mod stopping;
mod support;
mod truncation;
=======
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
>>>>>>> defects

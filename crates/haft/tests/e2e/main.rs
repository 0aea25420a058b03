//! The engine and every adapter together, over HTTP on loopback.
//!
//! Each promise is kept for every protocol, streamed and whole: the scripted server speaks all of
//! them, says what it received, and everything else is what a user of the library has.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    unreachable_pub
)]

mod choice;
mod chunking;
mod configured;
mod content;
mod conversation;
mod details;
mod faults;
mod hanging;
mod left_out;
mod one_shot;
mod rendering;
mod truncation;
mod typed;
mod waiting;
mod world;

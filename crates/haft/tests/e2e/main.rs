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
mod conversation;
mod faults;
mod truncation;
mod waiting;
mod world;

//! What one request of a conversation repeats of the one before, byte for byte: providers cache exactly
//! that.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]
#![allow(unreachable_pub, reason = "modules of one test crate")]

mod appended;
mod picked;
mod referenced;
mod searched;
mod sent;
mod world;

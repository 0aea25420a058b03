//! Hydration: one result per call, never a panic, provenance always.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

mod common;
mod plain;
mod plugged_in;
mod recording;
mod repairing;

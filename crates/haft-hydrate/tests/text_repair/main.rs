//! What the text repairer accepts, by kind, and what it refuses, by reason.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod accepted;
mod bounds;
mod common;
mod preview;
mod refused;
mod truncation;

//! The facade a Rust user depends on (skeleton).
pub use haft_core::*;

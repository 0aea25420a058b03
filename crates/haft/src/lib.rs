//! The facade a Rust user depends on (skeleton).
pub use haft_core::*;
/// Arguments made safe.
pub use haft_hydrate as hydrate;

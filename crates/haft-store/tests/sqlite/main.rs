//! What the store in a file promises beyond the contract: to last, to be alone, to be careful with
//! files that are not its own.
#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests are tests too; clippy.toml exempts only the functions"
)]

mod closing;
mod common;
mod damage;
#[cfg(unix)]
mod full;
mod killing;
mod opening;
mod reading;
mod reading_only;
mod underneath;
mod upgrading;

//! The contract of a store, one file per subject, kept by both stores.
#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests are tests too; clippy.toml exempts only the functions"
)]

#[macro_use]
mod common;

mod chains;
mod checkpoints;
mod concurrency;
mod conversations;
mod deleting;
mod events;
mod items;
mod lists;
mod owners;
mod pages;
mod responses;
mod retention;
mod taken;
mod traces;

//! The contract of the catalogue, one file per promise.
#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests are tests too; clippy.toml exempts only the functions"
)]

mod binding;
mod choosing;
mod common;
mod concurrency;
mod filtering;
mod groups;
mod hosting;
mod hydrating;
mod naming;
mod registering;
mod stable_bytes;

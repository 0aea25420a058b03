//! Many servers: connected to when they are needed, kept apart, remembered and brought back.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod kit;
mod lists;
mod offerings;
mod outages;
mod pinned;
mod tools;

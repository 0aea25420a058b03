//! What the tests of all adapters share: one conversation and a server that plays given bytes.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "shared by several test crates, none of which uses all of it"
)]

pub mod conversation;
pub mod events;
pub mod server;

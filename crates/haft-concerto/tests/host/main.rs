//! What a host promises (concerto.md §8 to §18), against a real provider on loopback that answers from
//! a script and remembers what it was asked.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    unreachable_pub
)]

mod agents;
#[path = "../fake/brain.rs"]
mod brain;
mod connections;
mod corpus;
mod faults;
mod kit;
mod mcp;
mod schemas;
mod seed;
mod served;
mod tools;
mod web;
mod whole;

//! The API over real HTTP, with a scripted model behind it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod access;
mod addresses;
mod ambiguity;
mod attack;
mod backends;
mod bodies;
mod breaks;
mod chat;
mod compaction;
mod contexts;
mod defects;
mod errors;
mod health;
mod ignored;
mod late_content;
#[path = "../../src/stream/legal.rs"]
mod legal;
mod limits;
mod lists;
mod mcp;
mod names;
mod plain;
mod raw;
mod reasoning;
mod repeating;
mod resuming;
mod revoked;
mod searching;
mod short_way;
mod state;
mod stopping;
mod streaming;
mod structured;
mod support;
mod tenants;
mod tools;
mod truncation;
mod upstream;
mod watch;
mod websocket;

//! The API over real HTTP, with a scripted model behind it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod breaks;
mod chat;
mod compaction;
mod contexts;
mod names;
mod plain;
mod stopping;
mod support;
mod truncation;

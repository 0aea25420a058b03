//! The API over real HTTP, with a scripted model behind it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod chat;
mod plain;
mod support;

//! The gateway's contract: real clients of both eras in front, a toolbox behind.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod calls;
mod changes;
mod client;
mod corpus;
mod facade;
mod http;
mod lists;
mod questions;
mod stdio;
mod toolbox;

//! MCP, with the real binary: servers of a configuration, by hand and as one server, and what is left of
//! them.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::needless_pass_by_value,
    reason = "tests read better with `json!` where it is used"
)]

#[path = "../support/mod.rs"]
mod support;

mod asked;
mod backup;
mod commands;
mod content;
mod credentials;
mod endpoints;
mod fake;
mod folders;
mod http;
mod import;
mod install;
mod kit;
mod log;
mod login;
mod nested;
mod observed;
mod odd_tools;
mod offers;
mod paged;
mod pinned;
mod processes;
mod prompted;
mod served;
mod spill;
mod typed;
mod unreadable;

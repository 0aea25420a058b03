//! Tools of MCP servers (`open-responses.md` §5.6), over real HTTP on loopback.

mod approvals;
mod calls;
mod forms;
mod lists;
mod own;
mod resuming;
mod searching;
mod server;

//! Programs on haft's engine: whatever a program wants of the world is an [`Effect`](crate::vm::Effect),
//! and a host performs it.
//!
//! What comes in: a loaded [`Program`](crate::load::Program) and a [`Setup`]: what it may do, which models
//! and MCP servers are known beside the manifest's, and where its words go. What goes out: the program's
//! result, the outcome of a test, or its tools for somebody else's catalogue. Calls of models are runs of
//! `haft-engine`, MCP servers are those of `haft-mcp`, and tools that a model calls run in fibers of their
//! own while their caller waits.
//!
//! A host must never block the runtime that it runs on (code runs on blocking threads, in slices), reach
//! what the program was not allowed, or leave a process or a task behind.
//!
//! All of it needs the feature `host`, which is on by default; without it there is [`Offline`], for the mock
//! provider alone.
//!
//! # A program
//!
//! ```
//! use haft_concerto::host::{Host, Setup};
//! use haft_concerto::{Connections, Options, Source, compile, load};
//!
//! # #[derive(Clone, Default)] struct Collected(std::sync::Arc<std::sync::Mutex<String>>);
//! # impl haft_concerto::vm::Output for Collected {
//! #     fn print(&mut self, text: &str) { self.0.lock().unwrap().push_str(text); }
//! #     fn log(&mut self, _: &str) {}
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = r#"
//!     model Clerk { provider: desk, base: "small" }
//!     match Clerk.execute("hello") { Ok(r) => emit("said", r.text), Err(e) => emit("error", e) }
//! "#;
//! let options = Options { connections: Connections::Any, ..Options::default() };
//! let ir = compile(&Source::new("hello.conc", text), &options).ir.ok_or("not compiled")?;
//! let setup = Setup { mock: true, ..Setup::default() };
//! let host = Host::new(load::load(ir)?, setup);
//! let output = Collected::default();
//! host.run(Box::new(output.clone())).await?;
//! host.close().await;
//! assert_eq!(*output.0.lock().unwrap(), "[emit:said] [mock response to: hello]\n");
//! # Ok(()) }
//! ```
//!
//! - [`Host::run`] runs the program, [`Host::test`] one of its tests on a machine of its own,
//!   [`Host::tools`] gives its tools for a catalogue. All of them may be used at the same time, from one
//!   host: they share connections, MCP servers and agents, and nothing of the program's state.
//! - [`Host::cancel`] stops everything that runs; [`Host::close`] ends servers and agents. A host that is
//!   dropped kills them.
//! - [`Host::on_emit`] registers a handler for a channel: what it gives is the value of `await emit`.
//!
//! # Tools for a catalogue
//!
//! [`Host::tools`] runs what comes before everything else (`$init`) once and gives one
//! [`ToolObject`](haft_core::ToolObject) for each public method, under its wire name
//! (`Calculator__add`). All of them share one machine, so that tool state and stores live as long as the
//! tools. Calls run in fibers of their own: one at a time has the machine, and hands it on after a slice
//! of some milliseconds and whenever it waits for the world, so that a long call does not hold up a short
//! one. What goes wrong in a call, a raise, a fault, `panic` or a limit, is that call's error and leaves the
//! machine as it is. [`Setup::call_limit`] bounds the time that one call computes; how long it may take in
//! all is [`Setup::tool_timeout`].

mod answer;
mod mock;
mod offline;
mod place;
mod reply;
mod verdict;

#[cfg(feature = "host")]
mod agents;
#[cfg(feature = "host")]
mod connections;
#[cfg(feature = "host")]
mod course;
#[cfg(feature = "host")]
mod failure;
#[cfg(feature = "host")]
mod house;
#[cfg(feature = "host")]
mod mock_model;
#[cfg(feature = "host")]
mod models;
#[cfg(feature = "host")]
mod rate;
#[cfg(feature = "host")]
mod servers;
#[cfg(feature = "host")]
mod session;
#[cfg(feature = "host")]
mod setup;
#[cfg(feature = "host")]
mod talk;
#[cfg(feature = "host")]
mod tools;
#[cfg(feature = "host")]
mod web;

pub use answer::{Unfit, read_answer};
#[cfg(feature = "host")]
pub use failure::RunFailure;
#[cfg(feature = "host")]
pub use house::Host;
pub use mock::{MockReply, mock_reply};
pub use offline::Offline;
pub use place::Place;
#[cfg(feature = "host")]
pub use setup::{EmitFormat, Entries, Models, Setup};
pub use verdict::TestOutcome;

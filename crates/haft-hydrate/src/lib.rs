//! Arguments made safe: parse, validate, at most one audited repair, instantiate.
//!
//! What comes in: tool calls as a model wrote them, and the table of tools that it was offered.
//! What goes out: one [`HydrationResult`](haft_core::HydrationResult) per call, in order, with its
//! provenance; on success a tool ready to run, otherwise errors that a model can act on.
//!
//! The rule behind everything here: a repair may restore what the model evidently wrote; it must
//! never decide what the model meant. A truncated value is never closed, a missing one never made
//! up, and of two readings none is taken.
//!
//! This crate must never run a tool, fetch a reference or panic.

mod coerce;
mod cost;
mod explain;
mod hydrator;
mod in_place;
mod json_schema;
mod offload;
mod parse;
mod pattern;
mod pipeline;
mod prepared;
mod preview;
mod repairer;
mod sink;
pub mod text;
mod typed;
mod unwrap;

pub use hydrator::{CallIds, Hydrator};
pub use json_schema::{FormatCheckingFactory, JsonSchemaFactory, pattern_cost};
pub use parse::{MAX_BYTES, MAX_DEPTH};
pub use pipeline::{CheckedArguments, Contract, check_arguments};
pub use prepared::{Admission, Compile, PreparedTool, ToolTable, ValidatorCache};
pub use preview::preview;
pub use repairer::{AuditedRepairer, RepairRefused, RepairRequest, Repaired, Repairer};
pub use sink::{JsonLinesSink, LogSink, ProvenanceSink};
pub use text::Root;
pub use typed::Hydrate;

//! The Open Responses API over HTTP, SSE and WebSocket, in front of any model.
//!
//! What comes in: requests of clients, a [`Store`](haft_core::Store), models, and a catalogue of tools
//! that run here. What goes out: responses as the specification and `OpenAI`'s clients expect them,
//! each the story of one run of the engine: a [`Server`] on a listener, or a router for an application
//! of your own.
//!
//! A request is read and checked (`wire`), what it refers to is looked up (`context`, `history`), its
//! tools become a binding (`toolkit`) and all of it a run (`plan`). A task drives the run (`drive`);
//! its events are translated by one writer (`stream`), stored before their end is told, and leave in
//! the client's dialect (`http`). Whoever operates the server sees what happens (`watch`).
//!
//! The server decides nothing about tools: which calls run, wait or are refused is the engine's
//! business. It must never show one owner's records to another, store what was asked not to be, or
//! tell a client what only a provider may know.

pub mod access;
mod app;
mod chat;
mod compaction;
mod connections;
mod content_hosts;
mod context;
mod conversation_locks;
mod drive;
mod durable;
mod error;
mod estimate;
mod failure;
mod gateway;
mod health;
mod history;
mod http;
mod lifetime;
mod live;
mod mcp;
mod metered_model;
mod models;
mod options;
mod orphans;
mod plan;
mod reasoning;
mod sealed;
mod server;
mod startup;
mod stream;
mod take_up;
mod toolkit;
mod truncate;
mod watch;
mod wire;

pub use error::{ApiError, ErrorBody, ErrorCode};
pub use gateway::{
    CallEntry, CallJournal, CallMonitor, CallQuery, CatalogBackend, GatewayOptions, ServerFilter,
    Sight, gateway, is_endpoint_name,
};
pub use http::Route;
pub use models::ModelEntry;
pub use options::{ApiKey, DialectChoice, ServerOptions};
pub use sealed::KeyFileError;
pub use server::{BuildError, Server, ServerBuilder, rotate_sealing_keys};
pub use startup::{API_KEYS_IN_USE, API_KEYS_NOTE, StartError};
pub use toolkit::UnsupportedTools;
#[cfg(feature = "otlp")]
pub use watch::OtlpOptions;
pub use watch::{
    AttemptTrace, CallRecord, CallTrace, HydrationTrace, Note, NoteKind, RunTrace, TurnTrace,
    WatchOptions, metrics_table,
};

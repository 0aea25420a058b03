//! The Open Responses API over HTTP, SSE and WebSocket.

mod app;
mod chat;
mod compaction;
mod connections;
mod context;
mod drive;
mod error;
mod estimate;
mod failure;
mod history;
mod http;
mod lifetime;
mod live;
mod models;
mod options;
mod orphans;
mod plan;
mod sealed;
mod server;
mod stream;
mod toolkit;
mod truncate;
mod wire;

pub use error::{ApiError, ErrorBody, ErrorCode};
pub use models::ModelEntry;
pub use options::{ApiKey, DialectChoice, ServerOptions};
pub use sealed::KeyFileError;
pub use server::{BuildError, Server, ServerBuilder, rotate_sealing_keys};
pub use toolkit::UnsupportedTools;

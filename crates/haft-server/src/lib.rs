//! The Open Responses API over HTTP, SSE and WebSocket.

mod app;
mod context;
mod drive;
mod error;
mod failure;
mod history;
mod live;
mod models;
mod options;
mod plan;
mod stream;
mod toolkit;
mod truncate;
mod wire;

pub use error::{ApiError, ErrorBody, ErrorCode};
pub use models::ModelEntry;
pub use options::{ApiKey, DialectChoice, ServerOptions};
pub use toolkit::UnsupportedTools;

//! The Open Responses API over HTTP, SSE and WebSocket.

mod error;
mod failure;
mod history;
mod stream;
mod toolkit;
mod wire;

pub use error::{ApiError, ErrorBody, ErrorCode};
pub use toolkit::UnsupportedTools;

//! The Open Responses API over HTTP, SSE and WebSocket.

mod error;
mod sealed;
mod wire;

pub use error::{ApiError, ErrorBody, ErrorCode};

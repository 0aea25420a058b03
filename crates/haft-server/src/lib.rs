//! The Open Responses API over HTTP, SSE and WebSocket.

mod error;
mod failure;
mod ids;
mod stream;
mod wire;

pub use error::{ApiError, ErrorBody, ErrorCode};

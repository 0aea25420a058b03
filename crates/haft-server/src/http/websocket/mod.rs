//! The API over a WebSocket: one response at a time, many in a row.

mod connection;
mod handshake;
mod message;
mod metered_io;

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::response::Response;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tracing::Instrument as _;

use crate::app::{App, Caller};
use crate::error::ApiError;

use connection::Connection;
pub(super) use handshake::is_requested;
use metered_io::MeteredIo;

/// `GET /responses` with `Upgrade: websocket`.
pub(super) fn open(
    app: Arc<App>,
    caller: Caller,
    headers: &HeaderMap,
    connection: Option<OnUpgrade>,
) -> Result<Response, ApiError> {
    let (response, connection) = handshake::accept(headers, connection)?;
    let limit = Some(app.options.max_body_bytes);
    let config = WebSocketConfig::default()
        .max_message_size(limit)
        .max_frame_size(limit);
    let served = async move {
        let connection = match connection.await {
            Ok(connection) => connection,
            Err(error) => {
                tracing::debug!(%error, "failed to upgrade a connection to a WebSocket");
                return;
            }
        };
        let io = MeteredIo::new(TokioIo::new(connection), app.memory.clone());
        let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
        Connection::new(socket, app, caller).run().await;
    };
    tokio::spawn(served.in_current_span());
    Ok(response)
}

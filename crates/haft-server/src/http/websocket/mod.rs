//! The API over a WebSocket (`open-responses.md` §7): one response at a time, many in a row.

mod connection;
mod message;

use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::Response;
use tracing::Instrument as _;

use crate::app::{App, Caller};
use crate::error::{ApiError, ErrorCode};

use connection::Connection;

/// `GET /responses` with `Upgrade: websocket`.
pub(super) fn open(
    app: Arc<App>,
    caller: Caller,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|rejection| {
        let message = format!("this is no WebSocket handshake: {rejection}");
        ApiError::new(ErrorCode::InvalidValue, message)
    })?;
    let limit = app.options.max_body_bytes;
    let upgrade = upgrade.max_message_size(limit).max_frame_size(limit);
    let span = tracing::Span::current();
    Ok(upgrade.on_upgrade(move |socket| {
        let served = Connection::new(socket, app, caller).run();
        served.instrument(span)
    }))
}

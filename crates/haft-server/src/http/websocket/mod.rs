//! The API over a WebSocket (`open-responses.md` §7): one response at a time, many in a row.

mod connection;
mod message;

use std::sync::Arc;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::header::ALLOW;
use axum::http::{HeaderValue, Method, Uri};
use axum::response::{IntoResponse, Response};
use tracing::Instrument as _;

use crate::app::{App, Caller};

use connection::Connection;

/// `GET /responses` with `Upgrade: websocket`; nothing else is got there.
pub(super) async fn upgrade(
    State(app): State<Arc<App>>,
    caller: Caller,
    method: Method,
    uri: Uri,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let Ok(upgrade) = upgrade else {
        let mut response = super::wrong_method(method, uri).await.into_response();
        let allowed = HeaderValue::from_static("POST");
        response.headers_mut().insert(ALLOW, allowed);
        return response;
    };
    let limit = app.options.max_body_bytes;
    let upgrade = upgrade.max_message_size(limit).max_frame_size(limit);
    let span = tracing::Span::current();
    upgrade.on_upgrade(move |socket| {
        let served = Connection::new(socket, app, caller).run();
        served.instrument(span)
    })
}

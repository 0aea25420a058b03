//! The API over a WebSocket (`open-responses.md` §7): one response at a time, many in a row.

mod connection;
mod message;

use std::sync::Arc;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::header::{ALLOW, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Method, Uri};
use axum::response::{IntoResponse, Response};

use crate::app::{App, Caller};
use crate::error::{ApiError, ErrorCode};

use connection::Connection;

/// `GET /responses` with `Upgrade: websocket`; nothing else is got there.
pub(super) async fn upgrade(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    method: Method,
    uri: Uri,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let Ok(upgrade) = upgrade else {
        let mut refused = super::wrong_method(method, uri).await.into_response();
        let allowed = HeaderValue::from_static("POST");
        refused.headers_mut().insert(ALLOW, allowed);
        return Ok(refused);
    };
    if let Some(origin) = headers.get(ORIGIN) {
        let allowed = &app.options.allowed_origins;
        if !allowed.iter().any(|allowed| origin == allowed.as_str()) {
            return Err(ApiError::new(
                ErrorCode::PermissionDenied,
                "this web page may not connect: the operator lists who may in `allowed_origins`",
            ));
        }
    }
    let limit = app.options.max_body_bytes;
    let upgrade = upgrade.max_message_size(limit).max_frame_size(limit);
    Ok(upgrade.on_upgrade(move |socket| Connection::new(socket, app, caller).run()))
}

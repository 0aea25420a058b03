//! The opening handshake of a WebSocket (RFC 6455, section 4.2).

use axum::body::Body;
use axum::http::header::{
    CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use hyper::upgrade::OnUpgrade;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::error::{ApiError, ErrorCode};

/// Whether a client asks for a WebSocket. Some offer other protocols with every request.
pub(crate) fn is_requested(headers: &HeaderMap) -> bool {
    has_token(headers, &UPGRADE, "websocket")
}

/// Checks a handshake. Gives the response that accepts it and the connection as it will be after that.
pub(super) fn accept(
    headers: &HeaderMap,
    connection: Option<OnUpgrade>,
) -> Result<(Response, OnUpgrade), ApiError> {
    if !has_token(headers, &CONNECTION, "upgrade") {
        return Err(invalid("the header `Connection: upgrade` is missing"));
    }
    if single(headers, &SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return Err(invalid("`Sec-WebSocket-Version` must be `13`"));
    }
    // 16 bytes in Base64.
    let key = single(headers, &SEC_WEBSOCKET_KEY).filter(|key| key.len() == 24);
    let Some(key) = key else {
        return Err(invalid("`Sec-WebSocket-Key` must be 16 bytes in Base64"));
    };
    let Some(connection) = connection else {
        return Err(invalid("the connection cannot be upgraded; use HTTP/1.1"));
    };
    let accepted = HeaderValue::try_from(derive_accept_key(key.as_bytes()))
        .map_err(|_| invalid("the header `Sec-WebSocket-Key` is malformed"))?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accepted);
    Ok((response, connection))
}

fn invalid(reason: &str) -> ApiError {
    let message = format!("invalid WebSocket handshake: {reason}");
    ApiError::new(ErrorCode::InvalidValue, message)
}

/// The value of a header that occurs once.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// Whether a header that is a list of tokens has this one.
fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let mut values = headers.get_all(name).iter();
    values.any(|value| {
        let mut tokens = value.as_bytes().split(|byte| *byte == b',');
        tokens.any(|it| it.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
    })
}

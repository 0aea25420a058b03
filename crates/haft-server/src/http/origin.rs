//! Requests of web pages: only from origins that the operator lists.
//!
//! A page that was opened anywhere can make its browser send requests to this machine. Browsers say
//! for whom they ask, and that is believed here; everybody else does not send the header.

use axum::body::Body;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;

use crate::app::App;
use crate::error::{ApiError, ErrorCode};

/// The origin of a page that may ask; none if no page asks.
pub(super) fn allowed(app: &App, headers: &HeaderMap) -> Result<Option<HeaderValue>, ApiError> {
    let Some(origin) = headers.get(ORIGIN) else {
        return Ok(None);
    };
    let mut known = app.options.allowed_origins.iter();
    if known.any(|known| known == "*" || origin == known.as_str()) {
        return Ok(Some(origin.clone()));
    }
    let named = haft_core::cut(&String::from_utf8_lossy(origin.as_bytes()));
    let message = format!(
        "pages of `{named}` may not use this server: its operator lists who may in \
         `allowed_origins` of `[server]`"
    );
    Err(ApiError::new(ErrorCode::PermissionDenied, message))
}

/// The answer to a browser that asks whether it may ask.
pub(super) fn preflight(method: &Method, origin: Option<&HeaderValue>) -> Option<Response> {
    if method != Method::OPTIONS || origin.is_none() {
        return None;
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("GET, POST, DELETE");
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static("*, authorization"),
    );
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("3600"));
    Some(response)
}

/// Tells the browser that its page may read the answer.
pub(super) fn mark(response: &mut Response, origin: Option<HeaderValue>) {
    let Some(origin) = origin else { return };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(VARY, HeaderValue::from_static("origin"));
    let exposed = HeaderValue::from_static(
        "x-request-id, haft-warning, haft-deferred-tools, retry-after, x-ratelimit-limit-requests, \
         x-ratelimit-remaining-requests, x-ratelimit-reset-requests",
    );
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
}

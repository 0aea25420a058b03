//! How errors and values leave.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use haft_models::pool::Witness;
use serde::Serialize;

use crate::error::{ApiError, ErrorBody, ErrorCode};

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        #[derive(Serialize)]
        struct Told<'e> {
            error: ErrorBody<'e>,
        }
        // Not the message: a provider may quote what it was sent.
        match self.code {
            // Of these there are many when there is least time to write them down.
            ErrorCode::ServerIsOverloaded => tracing::debug!("a request was sent away"),
            code if self.status().is_server_error() => {
                tracing::warn!(code = code.as_str(), "a request failed");
            }
            _ => {}
        }
        let body = Told { error: self.body() };
        let mut response = json(self.status(), &body);
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_seconds() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status() == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.must_not_retry {
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        response
    }
}

/// A wait in the whole seconds of a header, never too short.
pub(crate) fn seconds(wait: Duration) -> HeaderValue {
    HeaderValue::from(wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
}

/// Says which backends answered, if not the one that was meant.
pub(crate) fn name_stand_ins(response: &mut Response, witness: &Witness) {
    let names = witness.stand_ins();
    let names = names.and_then(|names| HeaderValue::from_bytes(names.as_bytes()).ok());
    if let Some(names) = names {
        response.headers_mut().insert("haft-model", names);
    }
}

/// How long most answers are at most.
const USUAL: usize = 2048;

/// A value as JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let mut body = Vec::with_capacity(USUAL);
    match serde_json::to_writer(&mut body, value) {
        Ok(()) => {
            let mut response = Response::new(Body::from(body));
            *response.status_mut() = status;
            let kind = HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }
        Err(error) => {
            tracing::error!(%error, "an answer cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// The same, with status 200.
pub(crate) fn ok(value: &impl Serialize) -> Response {
    json(StatusCode::OK, value)
}

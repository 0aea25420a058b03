//! Bodies of requests: JSON, declared as such, of bounded size and depth.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use serde_json::Value;

use crate::error::{ApiError, ErrorCode};

/// How long a body may take to arrive.
const MAX_WAIT: Duration = Duration::from_mins(2);

/// Reads a body as JSON.
pub(super) async fn read_json(request: Request, limit: usize) -> Result<Value, ApiError> {
    parse(&read_json_bytes(request, limit).await?)
}

/// The bytes of a body that is declared as JSON.
pub(super) async fn read_json_bytes(
    request: Request,
    limit: usize,
) -> Result<bytes::Bytes, ApiError> {
    let (parts, body) = request.into_parts();
    check_type(&parts.headers)?;
    read(body, limit).await
}

fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    if is_json(headers) {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorCode::UnsupportedContentType,
        "the body must be JSON: send the header `Content-Type: application/json`",
    ))
}

/// The same, where an empty body is as good as none.
pub(super) async fn read_optional_json(
    request: Request,
    limit: usize,
) -> Result<Option<Value>, ApiError> {
    let (parts, body) = request.into_parts();
    let bytes = read(body, limit).await?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    check_type(&parts.headers)?;
    parse(&bytes).map(Some)
}

async fn read(body: Body, limit: usize) -> Result<bytes::Bytes, ApiError> {
    let read = tokio::time::timeout(MAX_WAIT, to_bytes(body, limit)).await;
    let read = read.map_err(|_| {
        let message = format!(
            "the body was not there after {} seconds: send it again, faster or in pieces",
            MAX_WAIT.as_secs()
        );
        ApiError::new(ErrorCode::InvalidJson, message)
    })?;
    read.map_err(|error| {
        let is_too_large = std::error::Error::source(&error)
            .is_some_and(|source| source.to_string().contains("length limit"));
        if is_too_large {
            ApiError::new(
                ErrorCode::RequestTooLarge,
                format!("the body has more than {limit} bytes: send less at once"),
            )
        } else {
            ApiError::new(ErrorCode::InvalidJson, "the body broke off: send it again")
        }
    })
}

fn is_json(headers: &HeaderMap) -> bool {
    let declared = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    declared.is_some_and(|declared| {
        let kind = declared.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("application/json")
    })
}

/// The parser bounds the depth by itself.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(bytes).map_err(|error| {
        ApiError::new(
            ErrorCode::InvalidJson,
            format!("the body is not valid JSON: {error}"),
        )
    })
}

//! Bodies of requests: JSON, declared as such, of bounded size and depth.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, HttpBody as _};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use haft_core::StoredItem;
use serde_json::Value;
use tokio::time::Instant;

use crate::access::MemoryPermit;
use crate::app::App;
use crate::error::{ApiError, ErrorCode};
use crate::lifetime::stopped;

/// How long a body may take to arrive.
const MAX_WAIT: Duration = Duration::from_mins(2);

/// How long nothing of it may arrive, and how long where the memory budget is nearly used up.
const MAX_IDLE: Duration = Duration::from_secs(30);
const CROWDED_IDLE: Duration = Duration::from_secs(5);

/// How many values a body may hold. Two bytes can be one, and one takes a hundred bytes in memory.
const MAX_VALUES: usize = 1_000_000;

/// Bodies from this size on are not read between other requests: that takes too long.
const LARGE: usize = 128 * 1024;

/// Does something with a body, beside the other requests if it is large.
pub(super) async fn digest<T: Send + 'static>(
    bytes: Bytes,
    work: impl FnOnce(&[u8]) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    sized(bytes.len(), move || work(&bytes)).await
}

/// How many bytes stored items have.
pub(super) fn bytes_of<'i>(items: impl IntoIterator<Item = &'i StoredItem>) -> usize {
    items.into_iter().map(|item| item.json.get().len()).sum()
}

/// Does something for a body of this size, on a blocking thread if it is large.
pub(super) async fn sized<T: Send + 'static>(
    size: usize,
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    if size < LARGE {
        return work();
    }
    aside(work).await
}

/// Does something that takes long, beside the other requests.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            // Told where every other is told.
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(stopped()),
        },
    }
}

/// Reads a body as JSON.
pub(super) async fn read_json(request: Request, app: &App) -> Result<Value, ApiError> {
    digest(read_json_bytes(request, app).await?, parse).await
}

/// The bytes of a body that is declared as JSON.
pub(super) async fn read_json_bytes(request: Request, app: &App) -> Result<Bytes, ApiError> {
    let (parts, body) = request.into_parts();
    check_type(&parts.headers)?;
    read(body, app).await
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
    app: &App,
) -> Result<Option<Value>, ApiError> {
    let (parts, body) = request.into_parts();
    let bytes = read(body, app).await?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    check_type(&parts.headers)?;
    digest(bytes, parse).await.map(Some)
}

/// Reads a body to its end, in time and within bounds.
async fn read(body: Body, app: &App) -> Result<Bytes, ApiError> {
    let read = tokio::time::timeout(MAX_WAIT, collect(body, app)).await;
    read.unwrap_or_else(|_| {
        let message = format!(
            "timed out reading the request body after {}s",
            MAX_WAIT.as_secs()
        );
        Err(ApiError::new(ErrorCode::InvalidJson, message))
    })
}

async fn collect(body: Body, app: &App) -> Result<Bytes, ApiError> {
    let limit = app.options.max_body_bytes;
    let too_large = || {
        let message = format!("the body has more than {limit} bytes: send less at once");
        Err(ApiError::new(ErrorCode::RequestTooLarge, message))
    };
    if body.size_hint().lower() > limit as u64 {
        return too_large();
    }
    let mut pieces = body.into_data_stream();
    let mut permit = MemoryPermit::default();
    // Most come in one piece, which is not copied.
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    while let Some(piece) = next_piece(&mut pieces, app).await? {
        let piece = piece.map_err(|_| {
            ApiError::new(ErrorCode::InvalidJson, "the body broke off: send it again")
        })?;
        let size = first.len() + whole.len() + piece.len();
        if size > limit {
            return too_large();
        }
        app.memory.grow(&mut permit, size)?;
        if size == piece.len() {
            first = piece;
        } else {
            whole.extend_from_slice(&std::mem::take(&mut first));
            whole.extend_from_slice(&piece);
        }
    }
    let bytes = if whole.is_empty() {
        first
    } else {
        whole.freeze()
    };
    Ok(permit.with(bytes))
}

/// The next piece of a body. A client that sends nothing for a while is given up, sooner where others need the memory.
async fn next_piece(
    pieces: &mut BodyDataStream,
    app: &App,
) -> Result<Option<Result<Bytes, axum::Error>>, ApiError> {
    let begun = Instant::now();
    loop {
        match tokio::time::timeout(CROWDED_IDLE, pieces.next()).await {
            Ok(piece) => return Ok(piece),
            Err(_) if app.memory.is_under_pressure() || begun.elapsed() >= MAX_IDLE => {
                let message = "timed out reading the request body: no data arrived";
                return Err(ApiError::new(ErrorCode::InvalidJson, message));
            }
            Err(_) => {}
        }
    }
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
    if has_too_many_values(bytes) {
        let message = format!("the body holds more than {MAX_VALUES} values: send less at once");
        return Err(ApiError::new(ErrorCode::RequestTooLarge, message));
    }
    serde_json::from_slice(bytes).map_err(|error| ApiError::of_json(&error))
}

/// Whether there are more values than a body may hold. What is no JSON is the parser's business.
fn has_too_many_values(bytes: &[u8]) -> bool {
    if bytes.len() <= MAX_VALUES {
        return false;
    }
    let mut values = 1;
    let mut is_text = false;
    let mut is_escaped = false;
    for byte in bytes {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            // A value stands behind each of them, or none at all.
            b',' | b':' | b'[' | b'{' if !is_text => values += 1,
            _ => {}
        }
    }
    values > MAX_VALUES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_many_values_is_too_large_and_a_long_text_is_not() {
        let numbers = format!("[{}0]", "0,".repeat(MAX_VALUES));
        let error = parse(numbers.as_bytes()).unwrap_err();
        assert_eq!(error.code, ErrorCode::RequestTooLarge);
        let text = format!(r#"["\\\"{}"]"#, ",[{:".repeat(MAX_VALUES));
        assert!(parse(text.as_bytes()).is_ok());
    }
}

//! Chat Completions passed on to a server that speaks them: the bytes as they are, both ways.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use futures_util::StreamExt as _;
use haft_core::ModelError;
use haft_models::http::{ByteStream, Forwarded};

use super::super::{reply, sse};
use super::told;
use crate::access::{MemoryBudget, MemoryPermit, RunPermit};
use crate::chat::error_frame;
use crate::error::ApiError;
use crate::failure;

/// Passes an answer back.
pub(super) async fn pass(
    answer: Forwarded,
    is_streamed: bool,
    permit: RunPermit,
    memory: &MemoryBudget,
) -> Result<Response, ApiError> {
    let head = Head::of(&answer);
    let body = if is_streamed && answer.is_success() {
        Body::from_stream(Passing {
            is_events: head.is_events(),
            bytes: Some(answer.body),
            broken: None,
            tail: Tail::default(),
            _permit: permit,
        })
    } else {
        Body::from(collected(answer.body, memory).await?)
    };
    Ok(head.with(body))
}

/// What is passed on of an answer beside its body.
struct Head {
    status: StatusCode,
    content_type: Option<HeaderValue>,
    retry_after: Option<Duration>,
    /// Whether the same request would fail again.
    is_final: bool,
}

impl Head {
    fn of(answer: &Forwarded) -> Self {
        let content_type = answer.content_type.as_deref();
        Self {
            status: StatusCode::from_u16(answer.status).unwrap_or(StatusCode::BAD_GATEWAY),
            content_type: content_type.and_then(|kind| HeaderValue::from_str(kind).ok()),
            retry_after: answer.retry_after,
            is_final: answer.failure().is_some_and(failure::is_final),
        }
    }

    fn is_events(&self) -> bool {
        let kind = self.content_type.as_ref().and_then(|it| it.to_str().ok());
        kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"))
    }

    fn with(self, body: Body) -> Response {
        let is_events = self.is_events();
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if let Some(kind) = self.content_type {
            headers.insert(CONTENT_TYPE, kind);
        }
        if let Some(wait) = self.retry_after {
            headers.insert(RETRY_AFTER, reply::seconds(wait));
        }
        if self.is_final {
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        if is_events {
            sse::forbid_buffering(headers);
        }
        response
    }
}

/// A whole body, so that one that breaks off can still be told by its status.
async fn collected(mut bytes: ByteStream, memory: &MemoryBudget) -> Result<Bytes, ApiError> {
    let mut whole = BytesMut::new();
    let mut permit = MemoryPermit::default();
    while let Some(chunk) = bytes.next().await {
        let chunk = chunk.map_err(|error| told(&error))?;
        memory.grow(&mut permit, whole.len() + chunk.len())?;
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.freeze())
}

/// Bytes that are passed on as they come. Dropping it ends the request to the provider.
struct Passing {
    is_events: bool,
    bytes: Option<ByteStream>,
    /// What it breaks off with, when all that came before it has left.
    broken: Option<ModelError>,
    tail: Tail,
    _permit: RunPermit,
}

impl Stream for Passing {
    type Item = Result<Bytes, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(bytes) = self.bytes.as_mut() else {
            return Poll::Ready(self.broken.take().map(Err));
        };
        let next = ready!(bytes.as_mut().poll_next(cx));
        Poll::Ready(match next {
            Some(Ok(chunk)) => {
                self.tail.pass(&chunk);
                Some(Ok(chunk))
            }
            // Between two events there is room for one that says what happened; inside one, or in
            // a body of another kind, only a broken connection tells the truth.
            Some(Err(error)) if self.is_events && self.tail.is_between_events() => {
                self.bytes = None;
                Some(Ok(error_frame(&told(&error))))
            }
            Some(Err(error)) => {
                self.bytes = None;
                self.broken = Some(error);
                // A connection that breaks takes with it what has not left yet.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            None => {
                self.bytes = None;
                None
            }
        })
    }
}

/// The last bytes that were passed on.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
}

impl Tail {
    const LENGTH: usize = 4;

    fn pass(&mut self, chunk: &[u8]) {
        let start = chunk.len().saturating_sub(Self::LENGTH);
        self.bytes.extend_from_slice(&chunk[start..]);
        let excess = self.bytes.len().saturating_sub(Self::LENGTH);
        self.bytes.drain(..excess);
    }

    fn is_between_events(&self) -> bool {
        self.bytes.is_empty() || self.bytes.ends_with(b"\n\n") || self.bytes.ends_with(b"\r\n\r\n")
    }
}

//! Streams end when the key that opened them is revoked or expires.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use haft_core::BoxFuture;
use http_body::{Frame, SizeHint};

use crate::access::{Keyring, Pass};
use crate::error::ApiError;

/// Cuts a response that is a stream of events as soon as its key is not valid any more. What it followed is cancelled
/// like that of a client that has gone; a background response continues, as it belongs to the tenant.
pub(super) fn cut_stream(response: Response, keyring: &Arc<Keyring>, pass: &Pass) -> Response {
    let kind = response.headers().get(CONTENT_TYPE);
    let is_stream = kind.is_some_and(is_events);
    let Some(revoked) = keyring.revoked(pass).filter(|_| is_stream) else {
        return response;
    };
    response.map(|body| Body::new(UntilRevoked { body, revoked }))
}

fn is_events(kind: &HeaderValue) -> bool {
    kind.as_bytes().starts_with(b"text/event-stream")
}

struct UntilRevoked {
    body: Body,
    revoked: BoxFuture<'static, ApiError>,
}

impl HttpBody for UntilRevoked {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(error) = self.revoked.as_mut().poll(cx) {
            tracing::info!("closing a stream: {error}");
            // Nothing more of the run may pass, so it is dropped here and not when the connection is.
            drop(std::mem::take(&mut self.body));
            self.revoked = Box::pin(std::future::pending());
            return Poll::Ready(Some(Err(axum::Error::new(error))));
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

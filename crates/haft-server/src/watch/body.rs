//! A body that is watched until it is through.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use tracing::Span;

use super::request::Watched;

/// An answer's body, and who waits for its end.
pub(super) struct Counted {
    body: Body,
    /// What a run logs while its answer is read belongs to the request.
    span: Span,
    watched: Option<Watched>,
}

impl Counted {
    pub(super) fn new(body: Body, watched: Watched, span: Span) -> Self {
        Self {
            body,
            span,
            watched: Some(watched),
        }
    }

    pub(super) fn into_body(self) -> Body {
        Body::new(self)
    }
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let polled = this
            .span
            .in_scope(|| Pin::new(&mut this.body).poll_frame(cx));
        match &polled {
            Poll::Pending => {}
            Poll::Ready(Some(Ok(frame))) => {
                if let (Some(bytes), Some(watched)) = (frame.data_ref(), &mut self.watched) {
                    watched.passed(bytes.len());
                }
            }
            Poll::Ready(Some(Err(_))) => {
                if let Some(mut watched) = self.watched.take() {
                    watched.cut();
                }
            }
            Poll::Ready(None) => self.watched = None,
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // It may have said that it is through instead of being asked once more.
        let is_through = self.body.is_end_stream();
        if let Some(watched) = self.watched.as_mut().filter(|_| !is_through) {
            watched.cut();
        }
        // A run that is left behind goes on under the same name.
        let body = std::mem::take(&mut self.body);
        self.span.in_scope(|| drop(body));
    }
}

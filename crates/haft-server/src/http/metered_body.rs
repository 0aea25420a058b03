//! Responses that are being written count against the memory budget until they have left.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::Method;
use axum::response::{IntoResponse as _, Response};
use http_body::{Frame, SizeHint};

use crate::access::{FREE_BYTES, MemoryBudget, MemoryPermit};

/// Counts what a client has not read yet of a response.
///
/// A large response to a read is rejected where the budget is used up, because the client can ask again. Every other
/// response is the result of work that was done: it is written whatever it takes.
pub(super) fn count(response: Response, method: &Method, budget: &MemoryBudget) -> Response {
    let size = response.body().size_hint().exact();
    let size = size.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    let mut reserved = None;
    match size {
        Some(size) if size <= FREE_BYTES => return response,
        Some(size) if method.is_safe() => {
            if let Err(error) = budget.grow(reserved.insert(MemoryPermit::default()), size) {
                return error.into_response();
            }
        }
        _ => {}
    }
    let budget = budget.clone();
    response.map(|body| {
        Body::new(MeteredBody {
            body,
            budget,
            reserved,
        })
    })
}

struct MeteredBody {
    body: Body,
    budget: MemoryBudget,
    /// Counted before the body was begun: for its only frame.
    reserved: Option<MemoryPermit>,
}

impl HttpBody for MeteredBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        polled.map_ok(|frame| {
            // The connection keeps the bytes until they have left; the body is dropped before that.
            frame.map_data(|bytes| match this.reserved.take() {
                Some(permit) => permit.with(bytes),
                None => this.budget.force(bytes.len()).with(bytes),
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

//! The body of an answer, with its connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use haft_core::ModelError;

use super::error::WireError;
use super::framing::{Found, Framing};
use super::wire::Wire;
use super::{Direct, failed};

pub(super) struct Pieces {
    pub(super) pool: Arc<Direct>,
    pub(super) place: String,
    /// None when the answer is over.
    pub(super) wire: Option<Wire>,
    pub(super) framing: Framing,
    pub(super) keeps_open: bool,
}

impl Pieces {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, WireError>> {
        let Some(wire) = &mut self.wire else {
            return Poll::Ready(Ok(None));
        };
        loop {
            match self.framing.take(wire.buffer())? {
                Found::Piece(piece) => return Poll::Ready(Ok(Some(piece))),
                Found::End => return Poll::Ready(Ok(None)),
                Found::Nothing => {}
            }
            match ready!(wire.poll_read(cx)) {
                Ok(0) if self.framing.may_end_here() => return Poll::Ready(Ok(None)),
                Ok(0) => return Poll::Ready(Err(WireError::Cut)),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(WireError::of(error, true))),
            }
        }
    }
}

impl Stream for Pieces {
    type Item = Result<Bytes, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let piece = ready!(this.poll_piece(cx));
        Poll::Ready(match piece {
            Ok(Some(piece)) => Some(Ok(piece)),
            Ok(None) => {
                let wire = this.wire.take().filter(|_| this.keeps_open);
                if let Some(wire) = wire.filter(Wire::is_free) {
                    this.pool.keep(&this.place, wire);
                }
                None
            }
            Err(error) => {
                this.wire = None;
                Some(Err(failed(&this.place, &error)))
            }
        })
    }
}

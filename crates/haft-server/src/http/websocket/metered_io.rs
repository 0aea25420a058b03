//! A connection whose unfinished messages count against the memory budget.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::access::{MemoryBudget, MemoryPermit};

/// How long a message may take to arrive, from its first byte to its last.
const MAX_MESSAGE_TIME: Duration = Duration::from_mins(2);

/// The header of a control frame of a client: two bytes and the mask.
const CONTROL_HEADER: usize = 6;

/// Counts the bytes that were read since the last whole message.
///
/// The WebSocket library collects the fragments of a message by itself, without a bound over all connections. Reading
/// fails with [`io::ErrorKind::OutOfMemory`] when the budget is used up, and with [`io::ErrorKind::TimedOut`] when a
/// message takes too long.
pub(super) struct MeteredIo<S> {
    io: S,
    budget: MemoryBudget,
    permit: MemoryPermit,
    unfinished: usize,
    since: Option<Instant>,
}

impl<S> MeteredIo<S> {
    pub(super) fn new(io: S, budget: MemoryBudget) -> Self {
        Self {
            io,
            budget,
            permit: MemoryPermit::default(),
            unfinished: 0,
            since: None,
        }
    }

    /// A data message is whole: gives the permit that covers it.
    pub(super) fn finish_message(&mut self) -> MemoryPermit {
        self.unfinished = 0;
        self.since = None;
        std::mem::take(&mut self.permit)
    }

    /// A ping, pong or close frame with so many bytes of content is whole. It may have come between two fragments of a
    /// message, whose bytes still count.
    pub(super) fn finish_control(&mut self, content: usize) {
        self.unfinished = self.unfinished.saturating_sub(content + CONTROL_HEADER);
        if self.unfinished == 0 {
            self.since = None;
        }
    }

    /// Whether a message was begun and has taken too long since.
    pub(super) fn is_overdue(&self) -> bool {
        self.since
            .is_some_and(|since| since.elapsed() > MAX_MESSAGE_TIME)
    }

    fn count(&mut self, bytes: usize) -> io::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.unfinished += bytes;
        self.since.get_or_insert_with(Instant::now);
        if self.is_overdue() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let grown = self.budget.grow(&mut self.permit, self.unfinished);
        grown.map_err(|_| io::ErrorKind::OutOfMemory.into())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, buffer))?;
        let read = buffer.filled().len() - before;
        Poll::Ready(self.count(read))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

//! One connection: a socket, and what has come over it and was not taken yet.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::buf::Chain;
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::error::WireError;
use super::head::{Head, MAX_HEAD_BYTES};

/// Room for what comes next; more where it was filled.
const MIN_ROOM: usize = 8 * 1024;
const MAX_ROOM: usize = 256 * 1024;

pub(super) struct Wire {
    stream: TcpStream,
    /// What of the request the system has not taken yet.
    unsent: Option<Unsent>,
    /// Why no more of it can be sent.
    broken: Option<io::Error>,
    /// There is only memory while there is something to read.
    buffer: BytesMut,
    room: usize,
}

/// The head of a request, and its body.
type Unsent = Chain<io::Cursor<Vec<u8>>, Bytes>;

impl Wire {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            unsent: None,
            broken: None,
            buffer: BytesMut::new(),
            room: MIN_ROOM,
        }
    }

    /// Whether it can take a request: the last one was sent whole, and the other end has neither hung up
    /// nor said anything unasked.
    pub(super) fn is_free(&self) -> bool {
        // Only asks the system when something has happened since the last time.
        let read = self.stream.try_read(&mut [0]);
        let is_silent = read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        is_silent && self.buffer.is_empty() && self.unsent.is_none() && self.broken.is_none()
    }

    /// Sends a request and waits until its answer begins.
    ///
    /// Some servers answer before they have read everything: the rest is sent while their answer is read,
    /// unless they hang up on it. Then the answer counts, but the connection is good for nothing more.
    pub(super) async fn ask(&mut self, head: Vec<u8>, body: Bytes) -> Result<Head, WireError> {
        self.unsent = Some(Buf::chain(io::Cursor::new(head), body));
        let mut so_far = 0;
        poll_fn(|cx| self.poll_head(&mut so_far, cx)).await
    }

    /// Sends as much as the system takes.
    fn send(&mut self, cx: &mut Context<'_>) {
        while let Some(unsent) = &mut self.unsent {
            let sent = match pin!(self.stream.write_buf(unsent)).poll(cx) {
                Poll::Ready(Ok(0)) => Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(sent) => sent,
                Poll::Pending => return,
            };
            self.broken = sent.err();
            if self.broken.is_some() || !unsent.has_remaining() {
                self.unsent = None;
            }
        }
    }

    /// Reads until there is a head. So many bytes have come so far, those included that come before the
    /// answer begins.
    fn poll_head(
        &mut self,
        so_far: &mut usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Head, WireError>> {
        loop {
            if let Some(head) = Head::take(&mut self.buffer)? {
                return Poll::Ready(Ok(head));
            }
            let has_begun = *so_far > 0;
            let error = match ready!(self.poll_read(cx)) {
                Ok(0) if has_begun => WireError::Cut,
                Ok(0) => WireError::HungUp(self.broken.take()),
                Ok(_) if *so_far > MAX_HEAD_BYTES => WireError::LongHead,
                Ok(count) => {
                    *so_far += count;
                    continue;
                }
                Err(error) => WireError::of(error, has_begun),
            };
            return Poll::Ready(Err(error));
        }
    }

    /// What has come and was not taken.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Reads what has come, and sends what is left of the request; nothing at the end.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.send(cx);
        let Poll::Ready(is_ready) = self.stream.poll_read_ready(cx) else {
            if self.buffer.is_empty() {
                self.buffer = BytesMut::new();
            }
            return Poll::Pending;
        };
        is_ready?;
        self.buffer.reserve(self.room);
        let room = self.buffer.capacity() - self.buffer.len();
        let read = pin!(self.stream.read_buf(&mut self.buffer)).poll(cx);
        if matches!(read, Poll::Ready(Ok(count)) if count == room) {
            self.room = (self.room * 2).min(MAX_ROOM);
        }
        read
    }
}

//! One connection: a socket, and what has come over it and was not taken yet.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::error::WireError;
use super::head::Head;

/// Room for what comes next; more where it was filled.
const MIN_ROOM: usize = 8 * 1024;
const MAX_ROOM: usize = 256 * 1024;

pub(super) struct Wire {
    stream: TcpStream,
    /// There is only memory while there is something to read.
    buffer: BytesMut,
    room: usize,
}

impl Wire {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            buffer: BytesMut::new(),
            room: MIN_ROOM,
        }
    }

    /// Whether it can take a request: the other end has neither hung up nor said anything unasked.
    pub(super) fn is_free(&self) -> bool {
        // Only asks the system when something has happened since the last time.
        let read = self.stream.try_read(&mut [0]);
        self.buffer.is_empty() && read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Sends a request and waits until its answer begins.
    ///
    /// Some servers answer before they have read everything, and hang up on the rest. Their answer
    /// counts, but the connection is good for nothing more.
    pub(super) async fn ask(&mut self, head: Vec<u8>, body: Bytes) -> Result<Head, WireError> {
        let mut unsent = Buf::chain(head.as_slice(), body);
        let mut broken = None;
        let mut head = poll_fn(|cx| {
            if broken.is_none() {
                broken = self.send(&mut unsent, cx).err();
            }
            self.poll_head(&mut broken, cx)
        })
        .await?;
        head.keeps_open &= !unsent.has_remaining();
        Ok(head)
    }

    /// Sends as much as the system takes.
    fn send(&mut self, unsent: &mut impl Buf, cx: &mut Context<'_>) -> io::Result<()> {
        while unsent.has_remaining() {
            match pin!(self.stream.write_buf(unsent)).poll(cx) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => break,
            }
        }
        Ok(())
    }

    fn poll_head(
        &mut self,
        broken: &mut Option<io::Error>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Head, WireError>> {
        loop {
            if let Some(head) = Head::take(&mut self.buffer)? {
                return Poll::Ready(Ok(head));
            }
            let has_begun = !self.buffer.is_empty();
            let error = match ready!(self.poll_read(cx)) {
                Ok(0) if has_begun => WireError::Cut,
                Ok(0) => WireError::HungUp(broken.take()),
                Ok(_) => continue,
                Err(error) => WireError::of(error, has_begun),
            };
            return Poll::Ready(Err(error));
        }
    }

    /// What has come and was not taken.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Reads what has come; nothing at the end.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        ready!(self.stream.poll_read_ready(cx))?;
        self.buffer.reserve(self.room);
        let room = self.buffer.capacity() - self.buffer.len();
        let read = pin!(self.stream.read_buf(&mut self.buffer)).poll(cx);
        if matches!(read, Poll::Ready(Ok(count)) if count == room) {
            self.room = (self.room * 2).min(MAX_ROOM);
        }
        read
    }
}

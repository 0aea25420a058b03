//! What can go wrong on a connection.

use std::io;

use super::head::MAX_HEAD_BYTES;

/// Why there is no answer, or not all of it.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    /// Nothing of an answer had come by then.
    #[error("the server hung up before it answered")]
    HungUp(#[source] Option<io::Error>),
    /// Something had come.
    #[error("the connection was closed in the middle of the answer")]
    Cut,
    /// The system says so.
    #[error("the connection broke")]
    Broken(#[source] io::Error),
    /// Not an answer by RFC 9112.
    #[error("the answer is not HTTP/1.1: {0}")]
    NotHttp(&'static str),
    #[error("the answer has more than {MAX_HEAD_BYTES} bytes before its body")]
    LongHead,
}

impl WireError {
    /// What it means that reading or writing failed when so much was known of the answer.
    pub(super) fn of(error: io::Error, has_begun: bool) -> Self {
        let is_closed = matches!(
            error.kind(),
            io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::NotConnected
                | io::ErrorKind::WriteZero
        );
        match (is_closed, has_begun) {
            (true, false) => Self::HungUp(Some(error)),
            _ => Self::Broken(error),
        }
    }

    /// Whether the other end closed the connection before it said anything.
    pub(super) fn has_hung_up(&self) -> bool {
        matches!(self, Self::HungUp(_))
    }
}

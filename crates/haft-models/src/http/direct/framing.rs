//! Where an answer ends, and what of its bytes are its body (RFC 9112, 6 and 7).

use std::mem;

use bytes::{Buf as _, Bytes, BytesMut};
use httparse::{Status, parse_chunk_size};

use super::error::WireError;

/// How long the line in front of a chunk may be, and all that follows the last one.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// How much of a body is still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes.
    Length(u64),
    /// Chunks, each behind its length.
    Chunked(Chunk),
    /// Everything until the other end hangs up.
    UntilClosed,
}

/// What comes next of a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunk {
    /// The line with the length of a chunk.
    Size,
    /// So many bytes of it.
    Data(u64),
    /// The end of its line.
    LineEnd,
    /// Lines behind the last chunk, of which so many bytes have been read.
    Trailer(usize),
    /// Nothing.
    Over,
}

/// What was found in the bytes that have come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Piece(Bytes),
    /// More must come before anything can be said.
    Nothing,
    End,
}

impl Framing {
    /// Takes what belongs to the body next.
    pub(super) fn take(&mut self, buffer: &mut BytesMut) -> Result<Found, WireError> {
        match self {
            Self::Length(0) => Ok(Found::End),
            Self::Length(left) => Ok(piece(buffer, left)),
            Self::UntilClosed => {
                let mut left = u64::MAX;
                Ok(piece(buffer, &mut left))
            }
            Self::Chunked(chunk) => chunk.take(buffer),
        }
    }

    /// Whether the body is whole if nothing more comes.
    pub(super) fn may_end_here(&self) -> bool {
        *self == Self::UntilClosed
    }
}

impl Chunk {
    fn take(&mut self, buffer: &mut BytesMut) -> Result<Found, WireError> {
        loop {
            match self {
                Self::Size => match parse_chunk_size(buffer) {
                    Ok(Status::Complete((line, size))) if is_chunk_line(&buffer[..line]) => {
                        buffer.advance(line);
                        *self = match size {
                            0 => Self::Trailer(0),
                            size => Self::Data(size),
                        };
                    }
                    Ok(Status::Partial) if buffer.len() <= MAX_LINE_BYTES => {
                        return Ok(Found::Nothing);
                    }
                    _ => return Err(WireError::NotHttp("a chunk has no length")),
                },
                Self::Data(0) => *self = Self::LineEnd,
                Self::Data(left) => return Ok(piece(buffer, left)),
                Self::LineEnd => match (buffer.first(), buffer.get(1)) {
                    (Some(b'\r'), Some(b'\n')) => {
                        buffer.advance(2);
                        *self = Self::Size;
                    }
                    (None, _) | (Some(b'\r'), None) => return Ok(Found::Nothing),
                    _ => return Err(WireError::NotHttp("a chunk is longer than it says")),
                },
                Self::Trailer(read) => {
                    let end = memchr::memchr(b'\n', buffer);
                    if *read + end.unwrap_or(buffer.len()) > MAX_LINE_BYTES {
                        return Err(WireError::NotHttp("too much follows the last chunk"));
                    }
                    let Some(end) = end else {
                        return Ok(Found::Nothing);
                    };
                    let is_empty = matches!(&buffer[..end], b"" | b"\r");
                    buffer.advance(end + 1);
                    *self = if is_empty {
                        Self::Over
                    } else {
                        Self::Trailer(*read + end + 1)
                    };
                }
                Self::Over => return Ok(Found::End),
            }
        }
    }
}

/// Whether a line begins with a number and is one line: the parser takes nothing for zero, and passes over
/// whatever stands behind the number.
fn is_chunk_line(line: &[u8]) -> bool {
    let is_one_line = memchr::memchr(b'\n', line) == Some(line.len() - 1);
    is_one_line && line.first().is_some_and(u8::is_ascii_hexdigit)
}

/// Takes what is there of so many bytes.
fn piece(buffer: &mut BytesMut, left: &mut u64) -> Found {
    if buffer.is_empty() {
        return Found::Nothing;
    }
    let there = u64::try_from(buffer.len()).unwrap_or(u64::MAX);
    let piece = if there <= *left {
        // With its memory: whoever waits for the next piece keeps no room for it.
        *left -= there;
        mem::take(buffer)
    } else {
        // Less than what is there, which is a length.
        let count = usize::try_from(mem::take(left)).unwrap_or(buffer.len());
        buffer.split_to(count)
    };
    Found::Piece(piece.freeze())
}

#[cfg(test)]
#[path = "framing_tests.rs"]
mod tests;

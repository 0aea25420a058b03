//! One JSON value per line.

use std::collections::VecDeque;

use super::{FrameError, Frames, MAX_FRAME_BYTES};

/// Cuts a stream into lines. Blank lines are skipped.
///
/// ```
/// use haft_models::frame::{Frames, Lines};
/// let mut lines = Lines::default();
/// lines.feed(b"{\"a\":1}\r\n\n{\"a\"");
/// assert_eq!(lines.next_frame().unwrap()?, b"{\"a\":1}");
/// assert!(lines.next_frame().is_none());
/// assert_eq!(lines.rest().unwrap()?, b"{\"a\"");
/// # Ok::<(), haft_models::frame::FrameError>(())
/// ```
#[derive(Debug)]
pub struct Lines {
    limit: usize,
    line: Vec<u8>,
    ready: VecDeque<Vec<u8>>,
    failure: Option<FrameError>,
}

impl Default for Lines {
    fn default() -> Self {
        Self::with_limit(MAX_FRAME_BYTES)
    }
}

impl Lines {
    /// A parser whose lines have at most so many bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            ready: VecDeque::new(),
            failure: None,
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if !line.trim_ascii().is_empty() {
            self.ready.push_back(line.trim_ascii().to_vec());
        }
    }
}

impl Frames for Lines {
    type Frame = Vec<u8>;

    fn feed(&mut self, mut bytes: &[u8]) {
        while self.failure.is_none() && !bytes.is_empty() {
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + piece.len() > self.limit {
                self.failure = Some(FrameError::TooLong { limit: self.limit });
                return;
            }
            self.line.extend_from_slice(piece);
            let Some(end) = end else { return };
            bytes = &bytes[end + 1..];
            self.end_line();
        }
    }

    fn next_frame(&mut self) -> Option<Result<Vec<u8>, FrameError>> {
        match self.ready.pop_front() {
            Some(line) => Some(Ok(line)),
            None => self.failure.map(Err),
        }
    }

    fn rest(&mut self) -> Option<Result<Vec<u8>, FrameError>> {
        if self.failure.is_none() {
            self.end_line();
        }
        self.next_frame()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: &[&[u8]], limit: usize) -> Vec<Result<Vec<u8>, FrameError>> {
        let mut lines = Lines::with_limit(limit);
        let mut seen = Vec::new();
        for piece in pieces {
            lines.feed(piece);
        }
        while let Some(line) = lines.next_frame() {
            let is_error = line.is_err();
            seen.push(line);
            if is_error {
                return seen;
            }
        }
        seen.extend(lines.rest());
        seen
    }

    #[test]
    fn every_byte_boundary_gives_the_same_lines() {
        let bytes = "{\"a\":\"é\"}\r\n\n \n{\"b\":2}\n{\"c\"".as_bytes();
        let whole = cut(&[bytes], 100);
        assert_eq!(whole.len(), 3);
        for at in 0..=bytes.len() {
            assert_eq!(cut(&[&bytes[..at], &bytes[at..]], 100), whole, "at {at}");
        }
    }

    #[test]
    fn an_endless_line_is_refused_after_the_lines_before_it() {
        let seen = cut(&[b"ok\n", &[b'x'; 60], &[b'x'; 60]], 100);
        assert_eq!(
            seen,
            [Ok(b"ok".to_vec()), Err(FrameError::TooLong { limit: 100 })]
        );
    }
}

//! Server-sent events.

use std::collections::VecDeque;
use std::sync::Arc;

use memchr::{memchr, memchr2};

use super::{FrameError, Frames, MAX_FRAME_BYTES};

const BOM: &[u8] = "\u{feff}".as_bytes();

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// What its `event` line says; empty if there was none.
    pub event: String,
    /// Its `data` lines, joined by line breaks. Bytes that are no UTF-8 are replaced.
    pub data: String,
    /// The last `id` that the stream gave.
    pub id: Option<Arc<str>>,
}

/// Cuts a stream into server-sent events.
///
/// It follows the standard: lines end with `\n`, `\r\n` or `\r`, comments and unknown fields are
/// skipped, an event without data is none. What stands at the end without its blank line is kept
/// for [`rest`](Frames::rest), as many servers forget it.
///
/// ```
/// use haft_models::frame::{Frames, SseParser};
/// let mut parser = SseParser::default();
/// parser.feed(b"event: ping\r\ndata: a\r");
/// parser.feed(b"\ndata: b\r\n\r\n");
/// let event = parser.next_frame().unwrap()?;
/// assert_eq!((event.event.as_str(), event.data.as_str()), ("ping", "a\nb"));
/// # Ok::<(), haft_models::frame::FrameError>(())
/// ```
#[derive(Debug)]
pub struct SseParser {
    limit: usize,
    line: Vec<u8>,
    event: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    id: Option<Arc<str>>,
    after_return: bool,
    is_first_line: bool,
    ready: VecDeque<SseEvent>,
    failure: Option<FrameError>,
}

impl Default for SseParser {
    fn default() -> Self {
        Self::with_limit(MAX_FRAME_BYTES)
    }
}

impl SseParser {
    /// A parser whose events have at most so many bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            event: Vec::new(),
            data: Vec::new(),
            has_data: false,
            id: None,
            after_return: false,
            is_first_line: true,
            ready: VecDeque::new(),
            failure: None,
        }
    }

    /// Ends the line that came in several pieces.
    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        self.take_line(&line);
        // The allocation serves the next line.
        line.clear();
        self.line = line;
    }

    fn take_line(&mut self, mut line: &[u8]) {
        if std::mem::take(&mut self.is_first_line) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch();
        } else {
            self.field(line);
        }
    }

    fn field(&mut self, line: &[u8]) {
        let (name, value) = match memchr(b':', line) {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => value.clone_into(&mut self.event),
            b"id" if !value.contains(&0) => {
                self.id = Some(String::from_utf8_lossy(value).into());
            }
            _ => {}
        }
    }

    fn dispatch(&mut self) {
        let event = std::mem::take(&mut self.event);
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.has_data) {
            self.ready.push_back(SseEvent {
                event: text_of(event),
                data: text_of(data),
                id: self.id.clone(),
            });
        }
    }

    /// Whether a line of this length is within the limit with what is held beside it.
    fn check(&mut self, line: usize) -> bool {
        let held = line + self.data.len() + self.event.len();
        if held > self.limit {
            self.failure = Some(FrameError::TooLong { limit: self.limit });
        }
        self.failure.is_none()
    }
}

impl Frames for SseParser {
    type Frame = SseEvent;

    fn feed(&mut self, mut bytes: &[u8]) {
        while self.failure.is_none() && !bytes.is_empty() {
            if std::mem::take(&mut self.after_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = memchr2(b'\n', b'\r', bytes);
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            if !self.check(self.line.len() + piece.len()) {
                return;
            }
            let Some(end) = end else {
                self.line.extend_from_slice(piece);
                return;
            };
            if self.line.is_empty() {
                // Most lines come whole and need not be held.
                self.take_line(piece);
            } else {
                self.line.extend_from_slice(piece);
                self.end_line();
            }
            self.after_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
        }
    }

    fn next_frame(&mut self) -> Option<Result<SseEvent, FrameError>> {
        match self.ready.pop_front() {
            Some(event) => Some(Ok(event)),
            None => self.failure.map(Err),
        }
    }

    fn rest(&mut self) -> Option<Result<SseEvent, FrameError>> {
        if self.failure.is_none() {
            if !self.line.is_empty() {
                self.end_line();
            }
            self.dispatch();
        }
        self.next_frame()
    }
}

fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STREAM: &str = "\u{feff}: hello\r\nevent: a\ndata: 1\rdata:2\r\n\r\nid: 7\nretry: 9\nnonsense\n\
        data\n\nevent: lost\n\n\n\rdata: é…\n\n:\n\ndata: x: y\r\rid\ndata:  two\n\n";

    fn parsed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> Vec<String> {
        let mut parser = SseParser::with_limit(limit);
        let mut seen = Vec::new();
        for piece in pieces {
            parser.feed(piece);
            while let Some(event) = parser.next_frame() {
                seen.push(format!("{event:?}"));
                if event.is_err() {
                    return seen;
                }
            }
        }
        seen.extend(parser.rest().map(|event| format!("{event:?}")));
        seen
    }

    #[test]
    fn every_rule_of_the_standard_is_followed() {
        let mut parser = SseParser::default();
        parser.feed(STREAM.as_bytes());
        let mut events = Vec::new();
        while let Some(event) = parser.next_frame() {
            let event = event.unwrap();
            events.push((event.event, event.data, event.id));
        }
        let event = |event: &str, data: &str, id: Option<&str>| {
            (event.to_owned(), data.to_owned(), id.map(Arc::from))
        };
        assert_eq!(
            events,
            [
                event("a", "1\n2", None),
                event("", "", Some("7")),
                event("", "é…", Some("7")),
                event("", "x: y", Some("7")),
                event("", " two", Some("")),
            ]
        );
        assert_eq!(parser.rest(), None);
    }

    #[test]
    fn every_byte_boundary_gives_the_same_events() {
        let bytes = STREAM.as_bytes();
        let whole = parsed([bytes], 1_000);
        for at in 0..=bytes.len() {
            assert_eq!(
                parsed([&bytes[..at], &bytes[at..]], 1_000),
                whole,
                "at {at}"
            );
        }
        assert_eq!(parsed(bytes.chunks(1), 1_000), whole);
    }

    #[test]
    fn an_event_without_its_blank_line_is_the_rest() {
        let mut parser = SseParser::default();
        parser.feed(b"data: [DONE]");
        assert_eq!(parser.next_frame(), None);
        assert_eq!(parser.rest().unwrap().unwrap().data, "[DONE]");
        assert_eq!(parser.rest(), None);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let mut parser = SseParser::default();
        parser.feed(b"data: a\xffb\n\n");
        assert_eq!(parser.next_frame().unwrap().unwrap().data, "a\u{fffd}b");
    }

    #[test]
    fn an_endless_event_is_refused_and_holds_no_more_than_its_limit() {
        let mut parser = SseParser::with_limit(100);
        parser.feed(b"data: ok\n\n");
        for _ in 0..1_000 {
            parser.feed(b"data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        }
        assert_eq!(parser.next_frame().unwrap().unwrap().data, "ok");
        let refused = Some(Err(FrameError::TooLong { limit: 100 }));
        assert_eq!(parser.next_frame(), refused);
        assert_eq!(parser.rest(), refused, "the error stays");
        assert!(parser.line.capacity() < 1_000);
    }

    #[test]
    fn many_short_data_lines_count_together() {
        let mut parser = SseParser::with_limit(100);
        for _ in 0..60 {
            parser.feed(b"data: x\n");
        }
        assert!(parser.next_frame().unwrap().is_err());
        let mut comments = SseParser::with_limit(100);
        for _ in 0..1_000 {
            comments.feed(b": still here\n");
        }
        assert_eq!(comments.next_frame(), None);
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_events(
            bytes in proptest::collection::vec(
                prop_oneof![
                    3 => Just(b"data".to_vec()), 3 => Just(b":".to_vec()), 2 => Just(b" ".to_vec()),
                    4 => Just(b"\n".to_vec()), 3 => Just(b"\r".to_vec()), 1 => Just(b"event".to_vec()),
                    1 => Just(b"id".to_vec()), 1 => Just(BOM.to_vec()),
                    2 => proptest::collection::vec(any::<u8>(), 0..12),
                ],
                0..60,
            ).prop_map(|parts| parts.concat()),
            cuts in proptest::collection::vec(1_usize..9, 1..40),
            limit in prop_oneof![Just(20_usize), Just(10_000)],
        ) {
            let mut pieces = Vec::new();
            let mut rest = bytes.as_slice();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (piece, tail) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = tail;
            }
            prop_assert_eq!(parsed(pieces, limit), parsed([bytes.as_slice()], limit));
        }
    }
}

//! Server-sent events, each of bounded size.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use memchr::{memchr, memchr2};
use reqwest::Response;

use super::failure::on_the_way;
use crate::error::Cause;
use crate::line::IdScanner;

const BOM: &[u8] = "\u{feff}".as_bytes();

/// How much the parts of an event beside its data may have.
const FIELD_BYTES: usize = 4 * 1024;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// One that was read.
    Whole {
        /// What its `event` line says; empty if there was none.
        name: String,
        /// Its `data` lines, joined by line breaks; none if there was no such line.
        data: Option<String>,
        /// Its `id` line.
        id: Option<String>,
        /// Its `retry` line.
        retry: Option<u64>,
    },
    /// One that is larger than allowed.
    TooLong {
        /// The JSON of the `id` in its data, if there is one.
        id: Option<Vec<u8>>,
        /// How large it is.
        bytes: u64,
    },
}

/// Cuts a stream into events.
///
/// It follows the standard: lines end with `\n`, `\r\n` or `\r`, comments and unknown fields are
/// skipped. An event with an `id` or a `retry` and no data is passed on for their sake.
#[derive(Debug)]
pub(crate) struct EventParser {
    limit: usize,
    line: Vec<u8>,
    name: Vec<u8>,
    data: Option<Vec<u8>>,
    id: Option<String>,
    retry: Option<u64>,
    overflow: Option<Overflow>,
    is_after_return: bool,
    is_first_line: bool,
    ready: VecDeque<Event>,
}

/// An event that is too large: skipped up to its end.
#[derive(Debug)]
struct Overflow {
    scanner: IdScanner,
    bytes: u64,
    /// Whether anything of the line under way was seen: only a line with nothing ends the event.
    is_in_line: bool,
}

impl EventParser {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            name: Vec::new(),
            data: None,
            id: None,
            retry: None,
            overflow: None,
            is_after_return: false,
            is_first_line: true,
            ready: VecDeque::new(),
        }
    }

    pub(crate) fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.is_after_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = memchr2(b'\n', b'\r', bytes);
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            self.take_piece(piece);
            let Some(end) = end else {
                return;
            };
            self.end_line();
            self.is_after_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
        }
    }

    pub(crate) fn next_event(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    fn take_piece(&mut self, piece: &[u8]) {
        if let Some(overflow) = &mut self.overflow {
            overflow.scanner.feed(piece);
            overflow.bytes += piece.len() as u64;
            overflow.is_in_line |= !piece.is_empty();
            return;
        }
        let held = self.line.len()
            + piece.len()
            + self.data.as_ref().map_or(0, Vec::len)
            + self.name.len();
        if held <= self.limit {
            self.line.extend_from_slice(piece);
            return;
        }
        let mut scanner = IdScanner::default();
        let line = std::mem::take(&mut self.line);
        if let Some(data) = self.data.take() {
            scanner.feed(&data);
            scanner.feed(b"\n");
        }
        // Of a line under way only what is behind `data:` counts.
        let begin = line.strip_prefix(BOM).unwrap_or(&line);
        if begin.is_empty() {
            scanner.feed(piece.strip_prefix(b"data:").unwrap_or(piece));
        } else {
            scanner.feed(begin.strip_prefix(b"data:").unwrap_or(begin));
            scanner.feed(piece);
        }
        self.overflow = Some(Overflow {
            scanner,
            bytes: held as u64,
            is_in_line: true,
        });
    }

    fn end_line(&mut self) {
        if let Some(overflow) = &mut self.overflow {
            if !std::mem::take(&mut overflow.is_in_line) {
                self.dispatch();
            }
            return;
        }
        let line = std::mem::take(&mut self.line);
        let mut text = line.as_slice();
        if std::mem::take(&mut self.is_first_line) {
            text = text.strip_prefix(BOM).unwrap_or(text);
        }
        if text.is_empty() {
            self.dispatch();
        } else {
            self.field(text);
        }
        // The allocation serves the next line.
        self.line = line;
        self.line.clear();
    }

    fn field(&mut self, line: &[u8]) {
        let (name, value) = match memchr(b':', line) {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let short = &value[..value.len().min(FIELD_BYTES)];
        match name {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            b"event" => short.clone_into(&mut self.name),
            b"id" if !value.contains(&0) && value.len() <= FIELD_BYTES => {
                self.id = Some(text_of(value.to_vec()));
            }
            b"retry" => {
                self.retry = std::str::from_utf8(short)
                    .ok()
                    .and_then(|text| text.parse().ok());
            }
            _ => {}
        }
    }

    fn dispatch(&mut self) {
        let name = text_of(std::mem::take(&mut self.name));
        let data = self.data.take().map(text_of);
        let (id, retry) = (self.id.take(), self.retry.take());
        if let Some(overflow) = self.overflow.take() {
            let event = Event::TooLong {
                id: overflow.scanner.found(),
                bytes: overflow.bytes,
            };
            self.ready.push_back(event);
        } else if data.is_some() || id.is_some() || retry.is_some() {
            self.ready.push_back(Event::Whole {
                name,
                data,
                id,
                retry,
            });
        }
    }
}

fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The events of an answer.
pub(crate) struct EventStream {
    pieces: BoxStream<'static, reqwest::Result<Bytes>>,
    parser: EventParser,
}

impl EventStream {
    pub(crate) fn of(response: Response, limit: usize) -> Self {
        Self {
            pieces: response.bytes_stream().boxed(),
            parser: EventParser::new(limit),
        }
    }

    /// The next event; none at the end. Dropping the wait loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Result<Event, Cause>> {
        loop {
            if let Some(event) = self.parser.next_event() {
                return Some(Ok(event));
            }
            match self.pieces.next().await? {
                Ok(piece) => self.parser.feed(&piece),
                Err(error) => return Some(Err(on_the_way(error))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STREAM: &str = "\u{feff}: hello\r\nevent: a\ndata: 1\rdata:2\r\n\r\nid: 7\nretry: 9\nnonsense\n\
        data\n\nevent: lost\n\n\n\rdata: é…\n\n:\n\nid: 8\n\ndata: x: y\r\rretry: soon\ndata:  two\n\n";

    fn parsed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> Vec<Event> {
        let mut parser = EventParser::new(limit);
        let mut seen = Vec::new();
        for piece in pieces {
            parser.feed(piece);
            while let Some(event) = parser.next_event() {
                seen.push(event);
            }
        }
        seen
    }

    fn event(name: &str, data: Option<&str>, id: Option<&str>, retry: Option<u64>) -> Event {
        Event::Whole {
            name: name.into(),
            data: data.map(Into::into),
            id: id.map(Into::into),
            retry,
        }
    }

    #[test]
    fn every_rule_of_the_standard_is_followed_at_every_boundary() {
        let expected = [
            event("a", Some("1\n2"), None, None),
            event("", Some(""), Some("7"), Some(9)),
            event("", Some("é…"), None, None),
            event("", None, Some("8"), None),
            event("", Some("x: y"), None, None),
            event("", Some(" two"), None, None),
        ];
        let bytes = STREAM.as_bytes();
        for at in 0..=bytes.len() {
            assert_eq!(
                parsed([&bytes[..at], &bytes[at..]], 1000),
                expected,
                "at {at}"
            );
        }
        assert_eq!(parsed(bytes.chunks(1), 1000), expected);
    }

    #[test]
    fn an_event_that_is_too_long_costs_itself_only() {
        let long = format!(
            r#"{{"jsonrpc":"2.0","result":{{"id":1,"x":"{}"}},"id":42}}"#,
            "x".repeat(200)
        );
        let text = format!("data: a\n\nevent: message\ndata: {long}\n\ndata: b\n\n");
        for size in [1, 7, 50, 1000] {
            let events = parsed(text.as_bytes().chunks(size), 100);
            assert_eq!(events.len(), 3, "{events:?}");
            assert_eq!(events[0], event("", Some("a"), None, None));
            assert!(
                matches!(&events[1], Event::TooLong { id: Some(id), bytes: 200.. } if id == b"42"),
                "{events:?}"
            );
            assert_eq!(events[2], event("", Some("b"), None, None));
        }
    }

    #[test]
    fn many_short_lines_count_together_and_comments_do_not() {
        let events = parsed(
            std::iter::repeat_n(&b"data: x\n"[..], 60).chain([&b"\n"[..]]),
            100,
        );
        assert!(
            matches!(events.as_slice(), [Event::TooLong { .. }]),
            "{events:?}"
        );
        let mut parser = EventParser::new(100);
        for _ in 0..1000 {
            parser.feed(b": still here\n");
        }
        assert!(parser.overflow.is_none() && parser.next_event().is_none());
    }

    #[test]
    fn an_endless_event_holds_no_more_than_its_limit() {
        let mut parser = EventParser::new(100);
        for _ in 0..10_000 {
            parser.feed(b"data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        }
        assert!(parser.next_event().is_none());
        assert!(parser.line.capacity() < 1000);
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
            cut in 1_usize..9,
        ) {
            prop_assert_eq!(parsed(bytes.chunks(cut), 10_000), parsed([bytes.as_slice()], 10_000));
            // With a small limit only how much was seen of a long one may differ.
            let count = |events: Vec<Event>| events.len();
            prop_assert_eq!(count(parsed(bytes.chunks(cut), 20)), count(parsed([bytes.as_slice()], 20)));
        }
    }
}

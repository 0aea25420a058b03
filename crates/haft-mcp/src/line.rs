//! Lines of bounded length, and whose answer an over-long one is.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// One line of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A whole line, without its end.
    Whole(Vec<u8>),
    /// A line longer than allowed, of which only the `id` on its top level was read.
    TooLong {
        /// The JSON of the `id`, if there was one.
        id: Option<Vec<u8>>,
        /// How long the line is.
        bytes: u64,
    },
}

/// Reads lines of at most so many bytes.
///
/// Dropping a read in the middle loses nothing: what was taken is kept for the next one.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    limit: usize,
    line: Vec<u8>,
    overflow: Option<(IdScanner, u64)>,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        Self {
            reader,
            limit,
            line: Vec::new(),
            overflow: None,
        }
    }

    /// The next line; none at the end of the stream or when it breaks. What stands at the end without
    /// a line break is a line too.
    pub(crate) async fn next(&mut self) -> Option<Line> {
        loop {
            // What is taken from the buffer is taken at once: there is no `await` behind this one.
            let buffer = self.reader.fill_buf().await.unwrap_or_default();
            if buffer.is_empty() {
                return self.end();
            }
            let end = memchr::memchr(b'\n', buffer);
            let piece = &buffer[..end.unwrap_or(buffer.len())];
            if let Some((scanner, bytes)) = &mut self.overflow {
                scanner.feed(piece);
                *bytes += piece.len() as u64;
            } else if self.line.len() + piece.len() > self.limit {
                let mut scanner = IdScanner::default();
                scanner.feed(&self.line);
                scanner.feed(piece);
                self.overflow = Some((scanner, (self.line.len() + piece.len()) as u64));
                // The memory goes with the line.
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(piece);
            }
            let taken = piece.len() + usize::from(end.is_some());
            self.reader.consume(taken);
            if end.is_some() {
                return Some(self.taken());
            }
        }
    }

    fn end(&mut self) -> Option<Line> {
        (self.overflow.is_some() || !self.line.is_empty()).then(|| self.taken())
    }

    fn taken(&mut self) -> Line {
        match self.overflow.take() {
            Some((scanner, bytes)) => Line::TooLong {
                id: scanner.found(),
                bytes,
            },
            None => Line::Whole(std::mem::take(&mut self.line)),
        }
    }
}

/// Finds the value of the key `id` on the top level of a JSON object that is too large to be kept.
///
/// It is fed piece by piece and holds a few bytes. On what is no JSON it finds something or nothing,
/// and that is all that can be said.
#[derive(Debug, Default)]
pub(crate) struct IdScanner {
    depth: u32,
    in_string: bool,
    is_escaped: bool,
    /// The bytes of the key or of the value of `id` under way.
    held: Vec<u8>,
    place: Place,
    id: Option<Vec<u8>>,
}

/// Where the scanner is on the top level.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    #[default]
    Key,
    Value,
    IdValue,
}

/// No sensible `id` is longer.
const MAX_ID_BYTES: usize = 256;

impl IdScanner {
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) {
        while let Some(byte) = bytes.first().filter(|_| self.id.is_none()) {
            self.step(*byte);
            bytes = &bytes[1..];
            if self.in_string && !self.is_escaped && !self.is_wanted() {
                // Most of a large answer is text that says nothing here.
                let end = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
                bytes = &bytes[end..];
            }
        }
    }

    /// The `id`, as JSON.
    pub(crate) fn found(mut self) -> Option<Vec<u8>> {
        if self.id.is_none() && self.place == Place::IdValue {
            // The end of the line ends a number too.
            self.end_value();
        }
        self.id
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            self.hold(byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.hold(byte);
            }
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_value();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 && self.place == Place::Key => {
                let is_id = self.held == b"\"id\"";
                self.place = if is_id { Place::IdValue } else { Place::Value };
                self.held.clear();
            }
            b',' if self.depth == 1 => self.end_value(),
            _ => self.hold(byte),
        }
    }

    fn is_wanted(&self) -> bool {
        self.depth == 1 && self.place != Place::Value
    }

    fn hold(&mut self, byte: u8) {
        if self.is_wanted()
            && self.held.len() < MAX_ID_BYTES
            && (self.in_string || !byte.is_ascii_whitespace())
        {
            self.held.push(byte);
        }
    }

    fn end_value(&mut self) {
        let held = std::mem::take(&mut self.held);
        if self.place == Place::IdValue && !held.is_empty() {
            self.id = Some(held);
        }
        self.place = Place::Key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tokio::io::BufReader;

    async fn lines(bytes: &[u8], limit: usize, buffer: usize) -> Vec<Line> {
        let mut lines = Lines::new(BufReader::with_capacity(buffer, bytes), limit);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await {
            seen.push(line);
        }
        seen
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.into())
    }

    #[tokio::test]
    async fn lines_come_whole_however_they_are_cut() {
        for buffer in [1, 2, 7, 100] {
            let seen = lines(b"one\n\ntwo\r\nthree", 5, buffer).await;
            assert_eq!(
                seen,
                [whole("one"), whole(""), whole("two\r"), whole("three")]
            );
        }
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_costs_itself_only() {
        let long = format!(
            r#"{{"result":{{"id":9,"x":"{}"}},"id": "a,b" }}"#,
            "x".repeat(100)
        );
        let text = format!("ok\n{long}\nstill here\n");
        for buffer in [1, 3, 64, 1000] {
            let seen = lines(text.as_bytes(), 50, buffer).await;
            let too_long = Line::TooLong {
                id: Some(br#""a,b""#.to_vec()),
                bytes: long.len() as u64,
            };
            assert_eq!(seen, [whole("ok"), too_long, whole("still here")]);
        }
    }

    fn scanned(text: &str) -> Option<String> {
        let mut scanner = IdScanner::default();
        scanner.feed(text.as_bytes());
        scanner.found().map(|id| String::from_utf8(id).unwrap())
    }

    #[test]
    fn only_the_id_on_the_top_level_counts() {
        for (text, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":"#, Some("7")),
            (
                r#"{"a":{"id":1},"b":[{"id":2}],"c":"\"id\":3","id":4}"#,
                Some("4"),
            ),
            (r#"{ "id" : "x\"y" , "#, Some(r#""x\"y""#)),
            (r#"{"id":12"#, Some("12")),
            (r#"{"id":null}"#, Some("null")),
            (r#"{"idx":1}"#, None),
            ("not json at all, id: 3", None),
            ("", None),
        ] {
            assert_eq!(scanned(text).as_deref(), id, "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_id_of_any_object_is_found(
            before in proptest::collection::vec(("[a-z\"\\\\]{0,4}", any::<String>(), any::<i32>()), 0..4),
            id in prop_oneof![any::<i64>().prop_map(serde_json::Value::from), ".{0,20}".prop_map(serde_json::Value::from)],
            cut in any::<prop::sample::Index>(),
        ) {
            let mut object = serde_json::Map::new();
            for (key, text, number) in before {
                object.insert(format!("x{key}"), serde_json::json!({"id": number, "t": [text, {"id": text}]}));
            }
            object.insert("id".into(), id.clone());
            object.insert("z".into(), serde_json::json!([1, {"id": 0}]));
            let text = serde_json::Value::from(object).to_string();
            let (first, second) = text.as_bytes().split_at(cut.index(text.len()));
            let mut scanner = IdScanner::default();
            scanner.feed(first);
            scanner.feed(second);
            let found: serde_json::Value = serde_json::from_slice(&scanner.found().unwrap()).unwrap();
            prop_assert_eq!(found, id);
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut scanner = IdScanner::default();
            scanner.feed(&bytes);
            let _ = scanner.found();
        }
    }
}

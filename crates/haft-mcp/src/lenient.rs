//! JSON with values that no strict parser accepts.
//!
//! Servers write lone surrogates (`"\ud800"`), bytes that are not UTF-8, `NaN`, numbers like `1e400` and nesting
//! without end. Each costs that value, not the message: it is replaced by U+FFFD in a string, else by `null`.
//! Only messages that the strict parser rejects come here. Structural mistakes stay errors.

use serde_json::{Map, Value};

/// How deep values may nest, as in the strict parser.
const MAX_DEPTH: usize = 127;

/// A message that was read, and how many of its values were replaced.
#[derive(Debug, PartialEq)]
pub(crate) struct Lenient {
    pub(crate) value: Value,
    pub(crate) replaced: usize,
}

/// Reads a message, replacing what cannot be represented; none if it is not JSON.
pub(crate) fn parse(bytes: &[u8]) -> Option<Lenient> {
    let mut parser = Parser {
        bytes,
        at: 0,
        replaced: 0,
    };
    let value = parser.value(0)?;
    parser.space();
    (parser.at == bytes.len()).then_some(Lenient {
        value,
        replaced: parser.replaced,
    })
}

struct Parser<'b> {
    bytes: &'b [u8],
    at: usize,
    replaced: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while self
            .peek()
            .is_some_and(|it| matches!(it, b' ' | b'\t' | b'\n' | b'\r'))
        {
            self.at += 1;
        }
    }

    /// Takes this byte, after spaces.
    fn take(&mut self, byte: u8) -> bool {
        self.space();
        let is_it = self.peek() == Some(byte);
        self.at += usize::from(is_it);
        is_it
    }

    fn word(&mut self, word: &str) -> bool {
        let is_it = self.bytes[self.at..].starts_with(word.as_bytes());
        if is_it {
            self.at += word.len();
        }
        is_it
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        self.space();
        match self.peek()? {
            b'{' | b'[' if depth >= MAX_DEPTH => {
                self.replaced += 1;
                self.skip()?;
                Some(Value::Null)
            }
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string().map(Value::String),
            b't' => self.word("true").then_some(Value::Bool(true)),
            b'f' => self.word("false").then_some(Value::Bool(false)),
            b'n' if self.word("null") => Some(Value::Null),
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut members = Map::new();
        if self.take(b'}') {
            return Some(Value::Object(members));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return None;
            }
            let key = self.string()?;
            if !self.take(b':') {
                return None;
            }
            let value = self.value(depth + 1)?;
            members.insert(key, value);
            if self.take(b'}') {
                return Some(Value::Object(members));
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut items = Vec::new();
        if self.take(b']') {
            return Some(Value::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.take(b']') {
                return Some(Value::Array(items));
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    /// A number; those that are none, or too large, are `null`.
    fn number(&mut self) -> Option<Value> {
        for word in ["NaN", "nan", "Infinity", "-Infinity", "-NaN", "inf", "-inf"] {
            if self.word(word) {
                self.replaced += 1;
                return Some(Value::Null);
            }
        }
        let rest = &self.bytes[self.at..];
        let is_part =
            |it: &u8| it.is_ascii_digit() || matches!(it, b'+' | b'-' | b'.' | b'e' | b'E');
        let length = rest.iter().take_while(|it| is_part(it)).count();
        let text = std::str::from_utf8(&rest[..length]).ok()?;
        let begins = text
            .strip_prefix('-')
            .unwrap_or(text)
            .starts_with(|it: char| it.is_ascii_digit());
        if !begins {
            return None;
        }
        self.at += length;
        Some(serde_json::from_str(text).unwrap_or_else(|_| {
            self.replaced += 1;
            Value::Null
        }))
    }

    fn string(&mut self) -> Option<String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = &self.bytes[self.at..];
            let end = memchr::memchr2(b'"', b'\\', rest)?;
            self.plain(&rest[..end], &mut text);
            self.at += end + 1;
            if rest[end] == b'"' {
                return Some(text);
            }
            self.escape(&mut text)?;
        }
    }

    fn plain(&mut self, bytes: &[u8], text: &mut String) {
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                self.replace(text);
            }
        }
    }

    fn replace(&mut self, text: &mut String) {
        self.replaced += 1;
        text.push(char::REPLACEMENT_CHARACTER);
    }

    /// What follows a backslash.
    fn escape(&mut self, text: &mut String) -> Option<()> {
        let kind = self.peek()?;
        self.at += 1;
        let character = match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.unicode(text);
                return Some(());
            }
            _ => {
                self.replace(text);
                return Some(());
            }
        };
        text.push(character);
        Some(())
    }

    fn unicode(&mut self, text: &mut String) {
        let Some(first) = self.hex() else {
            return self.replace(text);
        };
        let character = match first {
            0xd800..0xdc00 if self.bytes[self.at..].starts_with(b"\\u") => {
                let back = self.at;
                self.at += 2;
                if let Some(second @ 0xdc00..0xe000) = self.hex() {
                    char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
                } else {
                    // The other one stands for itself.
                    self.at = back;
                    None
                }
            }
            code => char::from_u32(code),
        };
        match character {
            Some(character) => text.push(character),
            None => self.replace(text),
        }
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.bytes.get(self.at..self.at + 4)?;
        let digits = std::str::from_utf8(digits).ok()?;
        let code = u32::from_str_radix(digits, 16).ok()?;
        self.at += 4;
        Some(code)
    }

    /// Skips an array or an object, however deep.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                b'"' => {
                    let replaced = self.replaced;
                    self.string()?;
                    self.replaced = replaced;
                    continue;
                }
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(bytes: &[u8]) -> (Value, usize) {
        let read = parse(bytes).unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(bytes)));
        (read.value, read.replaced)
    }

    #[test]
    fn one_value_costs_itself() {
        for (bytes, value, replaced) in [
            (
                &br#"{"a":"x\ud800y","b":1}"#[..],
                json!({"a": "x\u{fffd}y", "b": 1}),
                1,
            ),
            (
                br#"["\ud83d\ude00","\udc00\ud800\u0041"]"#,
                json!(["😀", "\u{fffd}\u{fffd}A"]),
                2,
            ),
            (
                b"{\"a\":\"x\xff\xfey\",\"b\":[true,false,null]}",
                json!({"a": "x\u{fffd}\u{fffd}y", "b": [true, false, null]}),
                2,
            ),
            (
                b"[NaN, Infinity, -Infinity, 1e400, -1e999, 1.5, 0, 12]",
                json!([null, null, null, null, null, 1.5, 0, 12]),
                5,
            ),
            (br#"{"a":"\x\u12"}"#, json!({"a": "\u{fffd}\u{fffd}12"}), 2),
            (b"{\"a\\ud800\":{}}", json!({"a\u{fffd}": {}}), 1),
        ] {
            assert_eq!(read(bytes), (value, replaced));
        }
    }

    #[test]
    fn nesting_is_cut_where_the_strict_parser_gives_up() {
        let deep = format!(
            r#"{{"deep":{}"]"{},"after":1}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        let (value, replaced) = read(deep.as_bytes());
        assert_eq!((&value["after"], replaced), (&json!(1), 1));
        let text = value.to_string();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn structural_mistakes_stay_errors() {
        for bytes in [
            &b""[..],
            b"{",
            b"[1,]",
            b"{\"a\"}",
            b"{a:1}",
            b"\"x",
            b"[1] 2",
            b"tru",
            b"--1",
            b"{\"a\":1",
        ] {
            assert_eq!(parse(bytes), None, "{}", String::from_utf8_lossy(bytes));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn what_the_strict_parser_reads_is_read_the_same(text in r#"[\[\]{}",:0-9a-fnrtue\\ .\-]{0,40}"#) {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                prop_assert_eq!(parse(text.as_bytes()), Some(Lenient { value, replaced: 0 }));
            }
        }
    }
}

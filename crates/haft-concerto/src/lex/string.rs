//! Strings: on one line, over lines, and raw.

use super::{Lexer, OpenString, TokenKind};

/// How a piece of a string's text ended.
enum PieceEnd {
    /// At the quotes.
    Quotes,
    /// At `${`.
    Interpolation,
    /// Nowhere: the line or the file ended.
    Missing,
}

impl Lexer<'_> {
    pub(super) fn string(&mut self) {
        let start = self.at;
        let tripled = self.text[start..].starts_with("\"\"\"");
        self.at += if tripled { 3 } else { 1 };
        let (text, end) = self.piece(tripled, start);
        let text = self.keep(text);
        match end {
            PieceEnd::Quotes | PieceEnd::Missing => {
                self.token(TokenKind::Str(text), start, self.at);
            }
            PieceEnd::Interpolation => {
                self.token(TokenKind::TextStart(text), start, self.at);
                self.open.push(OpenString {
                    start,
                    tripled,
                    braces: 0,
                });
            }
        }
    }

    /// The rest of a string whose interpolated expression has just ended.
    pub(super) fn string_continued(&mut self) {
        let Some(open) = self.open.last() else { return };
        let (tripled, string_start) = (open.tripled, open.start);
        let start = self.at - 1;
        let (text, end) = self.piece(tripled, string_start);
        let text = self.keep(text);
        match end {
            PieceEnd::Interpolation => self.token(TokenKind::TextMiddle(text), start, self.at),
            PieceEnd::Quotes | PieceEnd::Missing => {
                self.open.pop();
                self.token(TokenKind::TextEnd(text), start, self.at);
            }
        }
    }

    fn keep(&mut self, text: String) -> u32 {
        self.out.texts.push(text);
        u32::try_from(self.out.texts.len() - 1).unwrap_or(u32::MAX)
    }

    fn piece(&mut self, tripled: bool, start: usize) -> (String, PieceEnd) {
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(['"', '\\', '$', '\n']).unwrap_or(rest.len());
            text.push_str(&rest[..plain]);
            self.at += plain;
            match (self.peek(0), self.peek(1)) {
                (Some(b'"'), _) if !tripled => {
                    self.at += 1;
                    return (text, PieceEnd::Quotes);
                }
                (Some(b'"'), Some(b'"')) if self.peek(2) == Some(b'"') => {
                    self.at += 3;
                    return (text, PieceEnd::Quotes);
                }
                (Some(b'$'), Some(b'{')) => {
                    self.at += 2;
                    return (text, PieceEnd::Interpolation);
                }
                (Some(b'\\'), _) => self.escape(&mut text),
                (Some(b'\n'), _) if !tripled => break,
                (Some(byte), _) => {
                    text.push(char::from(byte));
                    self.at += 1;
                }
                (None, _) => break,
            }
        }
        let end = if tripled { start + 3 } else { self.at };
        let help = "close it with `\"`; a text over several lines stands between `\"\"\"`";
        self.error(start, end, "this string is not closed")
            .push_help(if tripled {
                "close it with `\"\"\"`"
            } else {
                help
            });
        (text, PieceEnd::Missing)
    }

    fn escape(&mut self, text: &mut String) {
        let start = self.at;
        self.at += 1;
        let Some(c) = self.text[self.at..].chars().next() else {
            return;
        };
        let meant = match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            '0' => '\0',
            '\\' | '"' | '$' => c,
            'u' => return self.unicode_escape(start, text),
            // The end of the line is told as the missing end of the string.
            '\n' => return,
            _ => {
                self.at += c.len_utf8();
                self.error(start, self.at, format!("`\\{c}` is no escape"))
                    .push_help("there are `\\n \\t \\r \\\\ \\\" \\0 \\$ \\u{HEX}`");
                return;
            }
        };
        self.at += 1;
        text.push(meant);
    }

    fn unicode_escape(&mut self, start: usize, text: &mut String) {
        let rest = self.text[self.at + 1..]
            .strip_prefix('{')
            .unwrap_or_default();
        // Looked at no further than the longest escape goes.
        let length = rest
            .bytes()
            .take(7)
            .take_while(u8::is_ascii_hexdigit)
            .count();
        let closed = rest[length..].starts_with('}') && (1..=6).contains(&length);
        let digits = closed.then_some(&rest[..length]);
        let Some(digits) = digits else {
            self.at += 1;
            self.error(start, self.at, "`\\u` needs a number in braces")
                .push_help("as `\\u{1F600}`");
            return;
        };
        self.at += digits.len() + 3;
        let value = u32::from_str_radix(digits, 16).ok();
        match value.and_then(char::from_u32) {
            Some(c) => text.push(c),
            None => drop(self.error(start, self.at, format!("`\\u{{{digits}}}` is no character"))),
        }
    }

    pub(super) fn raw_string_follows(&self) -> bool {
        let rest = self.text[self.at + 1..].trim_start_matches('#');
        self.peek(1) == Some(b'#') && rest.starts_with('"')
    }

    pub(super) fn raw_string(&mut self) {
        let start = self.at;
        let rest = &self.text[start + 1..];
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        let body = start + 1 + hashes + 1;
        let close = format!("\"{}", "#".repeat(hashes));
        let length = self.text[body..].find(&close);
        if length.is_none() {
            self.error(start, body, "this raw string is not closed")
                .push_help(format!("close it with `{close}`"));
        }
        let end = length.map_or(self.text.len(), |length| body + length);
        let text = self.text[body..end].to_owned();
        self.at = (end + close.len()).min(self.text.len());
        let text = self.keep(text);
        self.token(TokenKind::Str(text), start, self.at);
    }
}

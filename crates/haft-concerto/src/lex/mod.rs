//! Text to words (concerto.md §1).
//!
//! The words of an interpolated string's expressions stand between its pieces of text, so the whole
//! program is one flat list. Nothing here recurses; a text of brackets costs memory, not stack.

mod number;
mod string;
mod token;

pub use token::{Comment, Keyword, Punct, Token, TokenKind};

use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::source::{SourceFile, Span};

/// The words of a file.
#[derive(Debug, Default)]
pub struct Lexed {
    /// All of them; the last is [`TokenKind::End`].
    pub tokens: Vec<Token>,
    /// The decoded texts of strings.
    pub texts: Vec<String>,
    /// The comments, in order.
    pub comments: Vec<Comment>,
}

/// Splits a file into its words. What is no word is told and left out.
pub fn lex(file: &SourceFile, diagnostics: &mut Diagnostics) -> Lexed {
    let mut lexer = Lexer {
        text: file.text(),
        base: file.base(),
        at: 0,
        out: Lexed::default(),
        open: Vec::new(),
        diagnostics,
    };
    lexer.out.tokens.reserve(file.text().len() / 4);
    lexer.run();
    lexer.out
}

/// A string whose interpolated expression is being read.
struct OpenString {
    start: usize,
    /// `"""` rather than `"`.
    tripled: bool,
    /// How many `{` of the expression are open.
    braces: u32,
}

struct Lexer<'a> {
    text: &'a str,
    base: u32,
    at: usize,
    out: Lexed,
    open: Vec<OpenString>,
    diagnostics: &'a mut Diagnostics,
}

impl Lexer<'_> {
    fn run(&mut self) {
        self.text.starts_with('\u{feff}').then(|| self.at += 3);
        while let Some(byte) = self.peek(0) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b'/' if self.peek(1) == Some(b'/') => self.line_comment(),
                b'/' if self.peek(1) == Some(b'*') => self.block_comment(),
                b'"' => self.string(),
                b'r' if self.raw_string_follows() => self.raw_string(),
                b'A'..=b'Z' | b'a'..=b'z' | b'_' => self.word(),
                b'0'..=b'9' => self.number(),
                _ => self.punct(),
            }
        }
        if let Some(open) = self.open.pop() {
            let start = open.start;
            self.error(start, start + 1, "the `${` of this string is not closed")
                .push_help("write `}` and the end of the string, or `\\${` for the text `${`");
        }
        let end = self.text.len();
        self.token(TokenKind::End, end, end);
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn span(&self, start: usize, end: usize) -> Span {
        // No file is longer than `MAX_FILE_BYTES`.
        #[expect(clippy::cast_possible_truncation, reason = "bounded by MAX_FILE_BYTES")]
        Span::new(self.base + start as u32, self.base + end as u32)
    }

    fn token(&mut self, kind: TokenKind, start: usize, end: usize) {
        let span = self.span(start, end);
        self.out.tokens.push(Token { kind, span });
    }

    fn error(&mut self, start: usize, end: usize, text: impl Into<String>) -> Told<'_> {
        let span = self.span(start, end);
        Told {
            diagnostic: Some(Diagnostic::new(Code::E001, span, text)),
            diagnostics: self.diagnostics,
        }
    }

    fn line_comment(&mut self) {
        let start = self.at;
        let rest = &self.text[start..];
        let length = rest.find('\n').unwrap_or(rest.len());
        let shown = rest[..length].trim_end().len();
        self.comment(start, start + shown, true);
        self.at += length;
    }

    fn block_comment(&mut self) {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(b'/'), Some(b'*')) => (depth, self.at) = (depth + 1, self.at + 2),
                (Some(b'*'), Some(b'/')) => (depth, self.at) = (depth - 1, self.at + 2),
                (Some(_), _) => self.at += 1,
                (None, _) => {
                    self.error(start, start + 2, "this comment is not closed")
                        .push_help("write `*/`; comments nest");
                    return;
                }
            }
            if depth == 0 {
                return self.comment(start, self.at, false);
            }
        }
    }

    fn comment(&mut self, start: usize, end: usize, to_line_end: bool) {
        let before = self.text[..start].bytes().rev();
        let mut before = before.skip_while(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
        let own_line = matches!(before.next(), None | Some(b'\n'));
        let span = self.span(start, end);
        self.out.comments.push(Comment {
            span,
            own_line,
            to_line_end,
        });
    }

    fn word(&mut self) {
        let start = self.at;
        while matches!(
            self.peek(0),
            Some(b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_')
        ) {
            self.at += 1;
        }
        let keyword = Keyword::of(&self.text[start..self.at]);
        let kind = keyword.map_or(TokenKind::Ident, TokenKind::Keyword);
        self.token(kind, start, self.at);
    }

    fn punct(&mut self) {
        let start = self.at;
        let rest = self.text.as_bytes();
        for length in (1..=3).rev() {
            let piece = rest.get(start..start + length);
            let piece = piece.and_then(|bytes| std::str::from_utf8(bytes).ok());
            let Some(punct) = piece.and_then(Punct::of) else {
                continue;
            };
            if self.ends_interpolation(punct) {
                return;
            }
            self.at += length;
            return self.token(TokenKind::Punct(punct), start, self.at);
        }
        self.no_word();
    }

    /// Counts the braces of an interpolated expression; its last one leads back to the string.
    fn ends_interpolation(&mut self, punct: Punct) -> bool {
        let Some(open) = self.open.last_mut() else {
            return false;
        };
        match punct {
            Punct::BraceOpen => open.braces += 1,
            Punct::BraceClose if open.braces == 0 => {
                self.at += 1;
                self.string_continued();
                return true;
            }
            Punct::BraceClose => open.braces -= 1,
            _ => {}
        }
        false
    }

    /// `'text'`: told once, and read as the string that it was meant to be.
    fn single_quoted(&mut self) -> bool {
        let start = self.at;
        let rest = &self.text[start + 1..];
        let line = rest.split('\n').next().unwrap_or_default();
        let Some(length) = line.find('\'') else {
            return false;
        };
        let inner = line[..length].to_owned();
        self.at = start + length + 2;
        self.error(
            start,
            start + length + 2,
            "strings are not written in single quotes",
        )
        .push_help("write `\"…\"`");
        let index = u32::try_from(self.out.texts.len()).unwrap_or(u32::MAX);
        self.out.texts.push(inner);
        self.token(TokenKind::Str(index), start, self.at);
        true
    }

    fn no_word(&mut self) {
        if self.peek(0) == Some(b'\'') && self.single_quoted() {
            return;
        }
        let start = self.at;
        // A run of such characters is one mistake.
        let known =
            |c: char| c.is_ascii() && !matches!(c, '#' | '$' | '&' | '\'' | '\\' | '^' | '`' | '~');
        let rest = &self.text[start..];
        let mut ends = rest
            .char_indices()
            .skip(1)
            .filter(|(_, c)| known(*c) && !c.is_control());
        let length = ends.next().map_or(rest.len(), |(at, _)| at);
        let wrong = &rest[..length];
        self.at += length;
        let help = match wrong {
            "&" => Some("values are copied, there are no references; the logical and is `&&`"),
            "'" | "`" => Some("strings are written in double quotes"),
            "#" => Some("comments begin with `//`"),
            "^" => Some("powers are `std::math::pow(base, exponent)`"),
            _ => None,
        };
        let text = format!("`{wrong}` is no part of the language");
        let mut told = self.error(start, start + length, text);
        if let Some(help) = help {
            told.push_help(help);
        }
    }
}

/// An error that is taken in when it is complete.
struct Told<'a> {
    diagnostic: Option<Diagnostic>,
    diagnostics: &'a mut Diagnostics,
}

impl Told<'_> {
    fn push_help(&mut self, help: impl Into<String>) {
        self.diagnostic = self.diagnostic.take().map(|it| it.help(help));
    }
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if let Some(diagnostic) = self.diagnostic.take() {
            self.diagnostics.push(diagnostic);
        }
    }
}

#[cfg(test)]
mod tests;

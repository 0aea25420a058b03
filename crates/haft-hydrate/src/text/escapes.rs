//! Escape sequences inside strings: those of JSON, those of other languages, and backslashes that
//! were never meant as escapes.

use std::ops::Range;

use haft_core::RepairKind;

use super::TextRefusal;
use super::parse::{Outcome, Parser};
use super::strings::Scan;

impl Parser<'_> {
    /// Reads the escape sequence at the current position.
    pub(super) fn escape(&mut self, scan: &mut Scan) -> Outcome {
        let at = self.pos;
        match self.byte(at + 1) {
            None => {
                self.pos = self.text.len();
                self.truncated()?;
                self.delete(RepairKind::CutString, at..at + 1)
            }
            Some(b'"') => {
                self.pos += 2;
                Ok(())
            }
            Some(b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                scan.other_escape = true;
                self.pos += 2;
                Ok(())
            }
            Some(b'u') => {
                scan.other_escape = true;
                self.unicode_escape()
            }
            Some(b'\'' | b'`') => {
                self.pos += 2;
                self.delete(RepairKind::ForeignEscape, at..at + 1)
            }
            // JavaScript and Python drop such a line end; a model may have meant to keep it.
            Some(b'\n' | b'\r') => {
                self.pos += 1;
                self.delete(RepairKind::GuessedBackslash, at..at + 1)
            }
            Some(b'x') if self.is_hex(at + 2..at + 4) => {
                self.pos += 1;
                self.insert(RepairKind::GuessedBackslash, at, "\\")
            }
            Some(_) => {
                scan.lone_backslash = true;
                self.pos += 1;
                self.insert(RepairKind::LoneBackslash, at, "\\")
            }
        }
    }

    fn is_hex(&self, range: Range<usize>) -> bool {
        let digits = self.text.as_bytes().get(range);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    }

    fn unicode_escape(&mut self) -> Outcome {
        let at = self.pos;
        let digits = self.text.as_bytes().get(at + 2..).unwrap_or_default();
        let good = digits
            .iter()
            .take(4)
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        if good < 4 && good == digits.len() {
            self.pos = self.text.len();
            self.truncated()?;
            return self.delete(RepairKind::CutString, at..self.text.len());
        }
        if good < 4 {
            return self.unreadable("four hexadecimal digits after `\\u`");
        }
        self.pos += 6;
        match self.code_unit(at) {
            0xd800..=0xdbff => self.low_surrogate(at),
            0xdc00..=0xdfff => self.unreadable("a surrogate pair"),
            _ => Ok(()),
        }
    }

    fn low_surrogate(&mut self, high: usize) -> Outcome {
        let at = high + 6;
        let rest = &self.text[at..];
        if rest.starts_with("\\u") && (0xdc00..=0xdfff).contains(&self.code_unit(at)) {
            self.pos = at + 6;
            return Ok(());
        }
        if rest.len() < 6 && (rest.is_empty() || "\\u".starts_with(rest) || rest.starts_with("\\u"))
        {
            self.pos = self.text.len();
            self.truncated()?;
            return self.delete(RepairKind::CutString, high..self.text.len());
        }
        Err(TextRefusal::Unreadable {
            offset: high,
            expected: "a surrogate pair",
        })
    }

    /// The code unit of the `\uXXXX` at `at`; 0 if there is none.
    fn code_unit(&self, at: usize) -> u16 {
        let digits = self.text.get(at + 2..at + 6).unwrap_or_default();
        u16::from_str_radix(digits, 16).unwrap_or(0)
    }
}

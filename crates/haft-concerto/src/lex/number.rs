//! Numbers.

use super::{Lexer, TokenKind};

impl Lexer<'_> {
    pub(super) fn number(&mut self) {
        let start = self.at;
        let radix = match (self.peek(0), self.peek(1)) {
            (Some(b'0'), Some(b'x' | b'X')) => Some(16),
            (Some(b'0'), Some(b'b' | b'B')) => Some(2),
            (Some(b'0'), Some(b'o' | b'O')) => Some(8),
            _ => None,
        };
        if let Some(radix) = radix {
            self.at += 2;
            self.digits_and_letters();
            return self.int(start, start + 2, radix);
        }
        self.digits();
        // `5..7` is two numbers, `5.abs()` a number and a method.
        if self.peek(0) == Some(b'.') && matches!(self.peek(1), Some(b'0'..=b'9')) {
            self.at += 1;
            self.digits();
            self.exponent();
            self.digits_and_letters();
            return self.float(start);
        }
        self.digits_and_letters();
        self.int(start, start, 10);
    }

    fn digits(&mut self) {
        while matches!(self.peek(0), Some(b'0'..=b'9' | b'_')) {
            self.at += 1;
        }
    }

    /// What sticks to a number is part of it, so that `12abc` is one mistake and not two words.
    fn digits_and_letters(&mut self) {
        while matches!(
            self.peek(0),
            Some(b'0'..=b'9' | b'_' | b'a'..=b'z' | b'A'..=b'Z')
        ) {
            self.at += 1;
        }
    }

    fn exponent(&mut self) {
        if !matches!(self.peek(0), Some(b'e' | b'E')) {
            return;
        }
        self.at += 1;
        if matches!(self.peek(0), Some(b'+' | b'-')) {
            self.at += 1;
        }
        self.digits();
    }

    fn int(&mut self, start: usize, digits: usize, radix: u32) {
        let text = self.text[digits..self.at].replace('_', "");
        let end = self.at;
        if let Ok(value) = i64::from_str_radix(&text, radix) {
            return self.token(TokenKind::Int(value), start, end);
        }
        let written = self.text[start..end].to_owned();
        let is_number = !text.is_empty() && text.chars().all(|c| c.is_digit(radix));
        if is_number {
            let wrong = format!("the number `{written}` is out of range");
            self.error(start, end, wrong)
                .push_help(format!("an Int is at most {}", i64::MAX));
        } else {
            let wrong = format!("`{written}` is no number");
            self.error(start, end, wrong).push_help(
                "a Float is written with a point, as `1.0e5`; a name does not begin with a digit",
            );
        }
        // The parser goes on as if it were one.
        self.token(TokenKind::Int(0), start, end);
    }

    fn float(&mut self, start: usize) {
        let end = self.at;
        let written = &self.text[start..end];
        let value = written.replace('_', "").parse::<f64>();
        let value = value.ok().filter(|value| value.is_finite());
        if value.is_none() {
            let wrong = format!("`{written}` is no number that fits a Float");
            self.error(start, end, wrong);
        }
        self.token(TokenKind::Float(value.unwrap_or(0.0)), start, end);
    }
}

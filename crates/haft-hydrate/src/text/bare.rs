//! Values without quotes: numbers, literals, and the words that are neither.

use haft_core::RepairKind;

use super::chars::{Quote, is_blank};
use super::parse::{Outcome, Parser, Place};

/// What a bare token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bare {
    Number,
    Literal,
    /// A literal of Python and its JSON name.
    Python(&'static str),
    /// A value that JSON cannot express: `undefined`, `NaN`.
    Unsayable,
    /// A number whose zero is missing at this place.
    LeadingDot(usize),
    /// A number that stops after its point, exponent or sign; so much of it is complete.
    CutNumber(usize),
    Text,
}

impl Bare {
    fn of(token: &str) -> Self {
        match token {
            "true" | "false" | "null" => Self::Literal,
            "True" => Self::Python("true"),
            "False" => Self::Python("false"),
            "None" => Self::Python("null"),
            "undefined" => Self::Unsayable,
            _ if matches!(
                token.trim_start_matches(['+', '-']),
                "NaN" | "Infinity" | "inf"
            ) =>
            {
                Self::Unsayable
            }
            _ => Self::number(token.as_bytes()),
        }
    }

    fn number(token: &[u8]) -> Self {
        let digits = |from: usize| {
            let rest = token.get(from..).unwrap_or_default();
            rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
        };
        let sign = usize::from(token.first() == Some(&b'-'));
        let whole = digits(sign);
        let mut at = sign + whole;
        let leading_dot = whole == 0;
        if whole > 1 && token.get(sign) == Some(&b'0') {
            return Self::Text;
        }
        if token.get(at) == Some(&b'.') {
            let fraction = digits(at + 1);
            if fraction == 0 && token.len() == at + 1 {
                return Self::CutNumber(if leading_dot { 0 } else { at });
            }
            if fraction == 0 {
                return Self::Text;
            }
            at += 1 + fraction;
        } else if leading_dot {
            return if token == b"-" {
                Self::CutNumber(0)
            } else {
                Self::Text
            };
        }
        if matches!(token.get(at), Some(b'e' | b'E')) {
            let signed = usize::from(matches!(token.get(at + 1), Some(b'+' | b'-')));
            let exponent = digits(at + 1 + signed);
            if exponent == 0 && token.len() == at + 1 + signed {
                return Self::CutNumber(at);
            }
            if exponent == 0 {
                return Self::Text;
            }
            at += 1 + signed + exponent;
        }
        match (at == token.len(), leading_dot) {
            (false, _) => Self::Text,
            (true, true) => Self::LeadingDot(sign),
            (true, false) => Self::Number,
        }
    }
}

impl Parser<'_> {
    /// Reads a value that is neither quoted nor bracketed.
    pub(super) fn bare_value(&mut self, place: Place) -> Outcome {
        let start = self.pos;
        self.note_escaped();
        if self.meets_escaped {
            return self.unreadable("a value");
        }
        let end = self.token_end(start);
        let bare = Bare::of(&self.text[start..end]);
        let incomplete = matches!(bare, Bare::Text | Bare::Unsayable | Bare::CutNumber(_));
        if incomplete && end == self.text.len() && end > start {
            self.pos = end;
            self.truncated()?;
            self.pos = start;
        }
        match bare {
            Bare::Number => self.number_end = Some(end),
            Bare::Literal => {}
            Bare::Python(json) => self.edit(RepairKind::PythonLiteral, start..end, json)?,
            Bare::Unsayable => self.edit(RepairKind::InventedValue, start..end, "null")?,
            Bare::LeadingDot(at) => {
                self.insert(RepairKind::LeadingDot, start + at, "0")?;
                self.number_end = Some(end);
            }
            Bare::CutNumber(0) => self.edit(RepairKind::InventedValue, start..end, "0")?,
            Bare::CutNumber(keep) => self.delete(RepairKind::CutLiteral, start + keep..end)?,
            Bare::Text => return self.bare_text(place, end),
        }
        self.pos = end;
        Ok(())
    }

    /// The end of the run of characters that cannot end a value.
    fn token_end(&self, start: usize) -> usize {
        for (length, c) in self.text[start..].char_indices() {
            let at = start + length;
            let ends = match c {
                ',' | ':' | ';' | '{' | '}' | '[' | ']' | '(' | ')' => true,
                '/' => matches!(self.byte(at + 1), Some(b'/' | b'*')),
                '<' => self.byte(at + 1) == Some(b'/'),
                '~' => self.text[at..].starts_with("~~~"),
                _ => is_blank(c) || Quote::opened_by(c).is_some(),
            };
            if ends {
                return at;
            }
        }
        self.text.len()
    }

    /// Text without quotes. Its border is a guess, so arguments never get past the first line.
    fn bare_text(&mut self, place: Place, token_end: usize) -> Outcome {
        let start = self.pos;
        let rest = &self.text[start..];
        if rest.starts_with("...") || rest.starts_with('\u{2026}') {
            self.edits.admit(RepairKind::Ellipsis, start)?;
        }
        self.edits.admit(RepairKind::UnquotedText, start)?;
        if self.byte(token_end) == Some(b'(') && place != Place::Root && token_end > start {
            return self.wrapped_scalar(token_end + 1);
        }
        let end = start + self.text_length(rest);
        if end == start {
            return self.unreadable("a value");
        }
        self.pos = end;
        let text = &self.text[start..end];
        if let Some(before) = text
            .strip_suffix('"')
            .filter(|before| !before.contains('"'))
        {
            let quoted = serde_json::Value::from(before).to_string();
            return self.edit(RepairKind::MissingQuote, start..end, quoted);
        }
        let quoted = serde_json::Value::from(text).to_string();
        self.edit(RepairKind::UnquotedText, start..end, quoted)
    }

    fn text_length(&self, rest: &str) -> usize {
        if let Some(regex) = rest.strip_prefix('/') {
            let mut escaped = false;
            let close = regex.find(|c| {
                let found = c == '/' && !escaped;
                escaped = c == '\\' && !escaped;
                found
            });
            if let Some(length) = close {
                return length + 2;
            }
        }
        // A quote that closes a text never opened ends it, as in `[a","b"]`.
        let bytes = rest.as_bytes();
        let end = (0..bytes.len()).find_map(|at| match bytes[at] {
            b',' | b'[' | b']' | b'{' | b'}' | b'\n' => Some(at),
            b'"' if bytes.get(at + 1) == Some(&b':') => Some(at + 1),
            _ => None,
        });
        let end = end.unwrap_or(rest.len());
        let text = rest[..end].trim_end_matches(is_blank);
        // A closing call bracket belongs to what encloses the document.
        if self.enclosure.call {
            return text.trim_end_matches([';', ')', ' ']).len();
        }
        text.len()
    }

    /// `ObjectId("123")`: the name says a type that JSON does not have (preview only).
    fn wrapped_scalar(&mut self, inside: usize) -> Outcome {
        self.delete(RepairKind::Reinterpreted, self.pos..inside)?;
        self.pos = inside;
        self.skip_blanks()?;
        let outside = std::mem::replace(&mut self.enclosure.call, true);
        match self.byte(self.pos) {
            Some(b')') => self.insert(RepairKind::InventedValue, self.pos, "null")?,
            Some(b'{' | b'[') | None => return self.unreadable("a single value"),
            Some(_) if self.char_at(self.pos).and_then(Quote::opened_by).is_some() => {
                self.string_value(Place::Root)?;
            }
            Some(_) => {
                let end = self.token_end(self.pos);
                if !matches!(
                    Bare::of(&self.text[self.pos..end]),
                    Bare::Number | Bare::Literal
                ) {
                    return self.unreadable("a single value");
                }
                self.pos = end;
            }
        }
        self.enclosure.call = outside;
        self.skip_blanks()?;
        if self.byte(self.pos) != Some(b')') {
            return self.unreadable("a closing parenthesis");
        }
        self.delete(RepairKind::Reinterpreted, self.pos..self.pos + 1)?;
        self.pos += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Bare;

    #[test]
    fn only_json_numbers_are_numbers() {
        for number in ["0", "-0", "12", "1.5", "-1.5e+3", "2E7", "0.10"] {
            assert_eq!(Bare::of(number), Bare::Number, "{number}");
        }
        for text in [
            "007", "1_000", "0x1f", "+5", "1.2.3", "5kg", "e5", "-e5", "-05", "2e3.4",
        ] {
            assert_eq!(Bare::of(text), Bare::Text, "{text}");
        }
        assert_eq!(Bare::of("2."), Bare::CutNumber(1));
        assert_eq!(Bare::of("2e+"), Bare::CutNumber(1));
        assert_eq!(Bare::of("-"), Bare::CutNumber(0));
        assert_eq!(Bare::of("-.3"), Bare::LeadingDot(1));
    }
}

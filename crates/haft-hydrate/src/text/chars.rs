//! What the single characters mean: blanks, quotes, the characters of a bare word.

/// The family of quotes that a string was opened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    Double,
    Single,
    Tick,
    CurlyDouble,
    CurlySingle,
}

impl Quote {
    /// The family that this character opens, if it is a quote at all.
    pub(super) fn opened_by(c: char) -> Option<Self> {
        match c {
            '"' => Some(Self::Double),
            '\'' => Some(Self::Single),
            '`' | '\u{b4}' => Some(Self::Tick),
            '\u{201c}'..='\u{201f}' => Some(Self::CurlyDouble),
            '\u{2018}'..='\u{201b}' => Some(Self::CurlySingle),
            _ => None,
        }
    }

    /// Whether this character may end a string of the family.
    pub(super) fn closed_by(self, c: char) -> bool {
        match self {
            Self::Double => c == '"',
            Self::Single => c == '\'',
            Self::Tick => matches!(c, '`' | '\u{b4}' | '\''),
            Self::CurlyDouble => matches!(c, '\u{201c}' | '\u{201d}'),
            Self::CurlySingle => matches!(c, '\u{2018}' | '\u{2019}'),
        }
    }

    /// Whether its closing character doubles as an apostrophe.
    pub(super) fn is_apostrophe(self) -> bool {
        matches!(self, Self::Single | Self::Tick | Self::CurlySingle)
    }
}

/// Whether JSON allows this byte between tokens.
pub(super) fn is_json_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Blanks that JSON does not know but people (and models) type.
pub(super) fn is_special_blank(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{85}' | '\u{1680}' | '\u{180e}' | '\u{2000}'
            ..='\u{200d}'
                | '\u{2028}'
                | '\u{2029}'
                | '\u{202f}'
                | '\u{205f}'
                | '\u{2060}'
                | '\u{3000}'
                | '\u{feff}'
                | '\u{b}'
                | '\u{c}'
    )
}

/// Whether a blank of either kind.
pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r') || is_special_blank(c)
}

/// Whether a line comment ends here.
pub(super) fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

/// Whether this character may stand in an unquoted key.
pub(super) fn is_key_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '.' | '@')
}

/// The next character that is no blank at or after `from`, and whether a line ended before it.
pub(super) fn next_solid(text: &str, from: usize) -> (Option<(usize, char)>, bool) {
    let mut newline = false;
    for (at, c) in text[from..].char_indices() {
        if is_blank(c) {
            newline |= c == '\n' || c == '\r';
        } else {
            return (Some((from + at, c)), newline);
        }
    }
    (None, newline)
}

/// The end of the run of key characters that starts at `from`.
pub(super) fn word_end(text: &str, from: usize) -> usize {
    text[from..]
        .find(|c| !is_key_char(c))
        .map_or(text.len(), |length| from + length)
}

/// Whether a literal of JSON or of Python.
pub(super) fn is_literal(word: &str) -> bool {
    matches!(word, "true" | "false" | "null" | "True" | "False" | "None")
}

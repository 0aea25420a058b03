//! The line of a file that a complaint is about, without its secrets.

use std::fmt;
use std::ops::Range;

use crate::text::printable;

/// How much of a line is shown.
const LINE_CHARS: usize = 120;

/// Words in a line that may hold a secret.
const SECRET_WORDS: [&str; 9] = [
    "api_key",
    "api-key",
    "apikey",
    "authorization",
    "bearer",
    "cookie",
    "password",
    "secret",
    "token",
];

/// One line of a file with a mark below the part that matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// Which line, from 1.
    pub(crate) line: usize,
    /// Which character of it, from 1.
    pub(crate) column: usize,
    shown: String,
    mark_from: usize,
    mark_chars: usize,
}

impl Excerpt {
    pub(crate) fn new(text: &str, span: &Range<usize>) -> Self {
        let start = floor_char_boundary(text, span.start);
        let end = floor_char_boundary(text, span.end).max(start);
        // A complaint about the end of a file is one about its last line that says something.
        let start = match text[..start].trim_end_matches(['\n', '\r']) {
            before if start == text.len() => before.len(),
            _ => start,
        };
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let rest = &text[line_start..];
        let line_text = rest.lines().next().unwrap_or_default();
        let line_end = line_start + line_text.len();
        let before = text[line_start..start.min(line_end)].chars().count();
        let marked = match start.min(line_end)..end.clamp(start.min(line_end), line_end) {
            range if range.is_empty() => 1,
            range => text[range].chars().count(),
        };
        let safe = masked(&printable(&line_text.replace('\t', " ")));
        // Of a long line, the part around the mark.
        let skipped = before.saturating_sub(LINE_CHARS / 2);
        let shown: String = safe.chars().skip(skipped).take(LINE_CHARS).collect();
        let mark_from = before - skipped;
        Self {
            line: text[..line_start].matches('\n').count() + 1,
            column: before + 1,
            shown: shown.trim_end().to_owned(),
            mark_from,
            mark_chars: marked.min(LINE_CHARS.saturating_sub(mark_from)).max(1),
        }
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(f, "{margin} |")?;
        writeln!(f, "{number} | {}", self.shown)?;
        let indent = " ".repeat(self.mark_from);
        write!(f, "{margin} | {indent}{}", "^".repeat(self.mark_chars))
    }
}

fn floor_char_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The line with a star for every character of a value that may be a secret. Every character keeps
/// its place.
fn masked(line: &str) -> String {
    let lower = line.to_lowercase();
    // An address may hold a password, `https://name:password@host`, or a key in its query.
    let is_address_of_somebody = lower.contains("://") && lower.contains(['@', '?']);
    // Any header may, whatever it is called; how many there may be is none. So may what a program gets.
    let has_headers = lower.replace("max_headers", "").contains("headers");
    let key = lower.trim_start();
    let is_for_program = key.starts_with("env") || key.starts_with("arg") || line.contains("${");
    let has_word = || SECRET_WORDS.iter().any(|word| lower.contains(word));
    if !is_address_of_somebody && !has_headers && !is_for_program && !has_word() {
        return line.to_owned();
    }
    let mut shown = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(['"', '\'']) {
        let (before, from_quote) = rest.split_at(at);
        let (quote, value) = from_quote.split_at(1);
        shown.push_str(&bare_masked(before));
        shown.push_str(quote);
        // A string without an end may be a secret to the end of the line.
        let end = end_of_string(value, quote).unwrap_or(value.len());
        let (value, after) = value.split_at(end);
        if is_variable_name(value) {
            shown.push_str(value);
        } else {
            shown.extend(value.chars().map(|_| '*'));
        }
        rest = match after.strip_prefix(quote) {
            Some(after) => {
                shown.push_str(quote);
                after
            }
            None => after,
        };
    }
    shown.push_str(&bare_masked(rest));
    shown
}

/// A value without quotes is a mistake, and may be a secret all the same. Keys are shown.
fn bare_masked(text: &str) -> String {
    let pieces: Vec<&str> = text.split('=').collect();
    let last = pieces.len() - 1;
    let masked = pieces.into_iter().enumerate().map(|(at, piece)| {
        let key_at = match at {
            0 => 0,
            _ if at == last => piece.len(),
            _ => piece.rfind([',', '{']).unwrap_or(piece.len()),
        };
        let (value, key) = piece.split_at(key_at);
        let stars = value.chars();
        let stars = stars.map(|it| if it.is_alphanumeric() { '*' } else { it });
        stars.chain(key.chars()).collect::<String>()
    });
    masked.collect::<Vec<_>>().join("=")
}

/// Where the string ends that has begun with this quote.
fn end_of_string(value: &str, quote: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, character) in value.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quote == "\"" => escaped = true,
            _ if value[at..].starts_with(quote) => return Some(at),
            _ => {}
        }
    }
    None
}

/// Whether this is how variables are named: what may be shown, because keys are not named so.
pub(super) fn is_variable_name(text: &str) -> bool {
    let allowed = |it: char| it.is_ascii_uppercase() || it.is_ascii_digit() || it == '_';
    text.starts_with(|it: char| it.is_ascii_uppercase() || it == '_')
        && text.len() <= 64
        && text.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, part: &str) -> String {
        let at = text.find(part).unwrap();
        Excerpt::new(text, &(at..at + part.len())).to_string()
    }

    #[test]
    fn the_mark_stands_below_its_part() {
        assert_eq!(
            shown("a = 1\n\tbé = 2\n", "2"),
            "  |\n2 |  bé = 2\n  |       ^"
        );
        assert_eq!(
            shown("long = 12", "12"),
            "  |\n1 | long = 12\n  |        ^^"
        );
    }

    #[test]
    fn any_span_can_be_shown() {
        let text = "[server]\r\nlisten = \"é\"\n\n\n";
        for start in 0..=text.len() + 2 {
            for end in 0..=text.len() + 2 {
                let excerpt = Excerpt::new(text, &(start..end));
                assert!(excerpt.line <= 4 && excerpt.column <= 14, "{excerpt:?}");
            }
        }
        assert_eq!(Excerpt::new("", &(0..0)).line, 1);
    }

    #[test]
    fn of_a_long_line_the_part_around_the_mark_is_shown() {
        let text = format!("a = \"{}\" # here {}", "x".repeat(500), "y".repeat(500));
        let lines = shown(&text, "here");
        assert!(lines.contains("# here y"), "{lines}");
        assert!(lines.lines().all(|line| line.len() < 140), "{lines}");
    }

    #[test]
    fn no_line_shows_a_secret() {
        for line in [
            r#"api_key = "hunter2-é""#,
            r#"{ name = "a", api_key = 'hunter2', wrong = 1 }"#,
            r#"headers = { Authorization = "Bearer hunter2" }"#,
            r#"api_key = "hunter2"#,
            r"api_key = hunter2",
            r#"api_key_env = "hunter2""#,
            r#"x-token = "a\"hunter2""#,
            r#"{ api_key = hunter2, name = "a" }"#,
            r"api_key = hunter2=",
            r#"base_url = "https://me:hunter2@host""#,
            r#"endpoint = "https://host?key=hunter2""#,
            r#"headers = { x-team = "hunter2" }"#,
            r#"headers.x-team = "hunter2""#,
            r#"env = { A = "hunter2" }"#,
            r#"A = "hunter2-${B}""#,
            r#"args = ["--key", "hunter2"]"#,
        ] {
            let excerpt = Excerpt::new(line, &(0..1)).to_string();
            assert!(!excerpt.contains("hunter2"), "{excerpt}");
        }
        for (line, shown) in [
            (r#"api_key_env = "MY_KEY""#, "MY_KEY"),
            ("max_headers = 12", "12"),
        ] {
            assert!(Excerpt::new(line, &(0..1)).to_string().contains(shown));
        }
    }
}

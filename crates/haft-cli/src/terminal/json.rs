//! Values as JSON, for programs and for people who look at it.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use serde::Serialize;

use crate::text::steers;

/// Prints a value as JSON over several lines.
pub(crate) fn print_json(value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    writeln!(io::stdout(), "{}", escaped(&text))
}

/// The value in one line.
pub(crate) fn json_line(value: &impl Serialize) -> io::Result<String> {
    Ok(escaped(&serde_json::to_string(value)?))
}

/// The same JSON with those characters written out that would steer a terminal: JSON itself only
/// wants the oldest of them to be.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if steers(character) {
            // None of them needs more than one unit of UTF-16. Writing to a text cannot fail.
            let _ = write!(text, "\\u{:04x}", u32::from(character));
        } else {
            text.push(character);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_never_steers_a_terminal_and_means_the_same() {
        let value = "a\u{1b}]0;title\u{7}\u{9b}2J\u{7f}\u{202e}é\n\u{1f600}";
        let line = json_line(&value).unwrap();
        assert!(!line.chars().any(steers), "{line:?}");
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), value);
    }
}

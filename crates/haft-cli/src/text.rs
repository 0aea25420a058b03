//! Texts of others, made fit for a terminal.

use std::time::Duration;

/// The text in one line, cut after so many characters.
pub(crate) fn one_line(text: &str, most_chars: usize) -> String {
    let line = printable(&text.replace('\n', "⏎"));
    match line.char_indices().nth(most_chars) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// The text without anything that moves the cursor or colours the screen: a model or a tool must not
/// be able to write over what was printed before.
pub(crate) fn printable(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' | '\t' => character,
        // Also those that turn the direction of writing.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        character if character.is_control() => '\u{fffd}',
        character => character,
    };
    text.chars().map(shown).collect()
}

/// A time as a person says it.
pub(crate) fn spoken(time: Duration) -> String {
    match time.as_millis() {
        milliseconds @ ..1000 => format!("{milliseconds} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

/// `1 call`, `2 calls`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_gets_through() {
        assert_eq!(printable("a\u{1b}[2Jb\r\u{202e}c\td\n"), "a�[2Jb��c\td\n");
        assert_eq!(one_line("a\nb\rc", 4), "a⏎b�…");
    }
}

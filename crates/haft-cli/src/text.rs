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
    let shown = |character| match character {
        '\t' => character,
        character if steers(character) => '\u{fffd}',
        character => character,
    };
    text.chars().map(shown).collect()
}

/// Whether a terminal does something else with it than to show it, beside a line break: all control
/// characters, the older and the newer ones, and those that turn the direction of writing.
pub(crate) fn steers(character: char) -> bool {
    match character {
        '\n' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        character => character.is_control(),
    }
}

/// An address may hold a name and a password, and a key in its query.
pub(crate) fn without_password(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
}

/// Which of these names was meant.
pub(crate) fn nearest<'n>(name: &str, among: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_'], "");
    let name = plain(name);
    among
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(&name, &plain(known)), known))
        .filter(|(distance, known)| *distance <= (known.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// A time as a person says it.
pub(crate) fn spoken(time: Duration) -> String {
    match time.as_millis() {
        milliseconds @ ..1000 => format!("{milliseconds} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

/// A moment, in seconds since the epoch, as a date and a time of day.
pub(crate) fn moment(seconds: i64) -> String {
    match jiff::Timestamp::from_second(seconds) {
        Ok(moment) => moment.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => format!("{seconds} s since the epoch"),
    }
}

/// How long ago a moment was.
pub(crate) fn ago(seconds: i64, now: i64) -> String {
    match now.saturating_sub(seconds) {
        ..1 => String::from("now"),
        age @ ..60 => format!("{age} s ago"),
        age @ ..3600 => format!("{} min ago", age / 60),
        age @ ..86_400 => format!("{} h ago", age / 3600),
        age => format!("{} d ago", age / 86_400),
    }
}

/// Seconds since the epoch.
pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// `1 call`, `2 calls`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}

/// For a shell, whatever is in it.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The same, if it would be something else to a shell as it is.
pub(crate) fn quoted_if_needed(text: &str) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || "/._-".contains(it);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        quoted(text)
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

    #[test]
    fn the_nearest_name_is_found_and_no_far_one() {
        let known = ["listen", "data_dir", "max_runs"];
        assert_eq!(nearest("lisen", known), Some("listen"));
        assert_eq!(nearest("dataDir", known), Some("data_dir"));
        assert_eq!(nearest("max-run", known), Some("max_runs"));
        assert_eq!(nearest("colour", known), None);
    }

    #[test]
    fn moments_are_told_in_the_words_of_people() {
        assert_eq!(moment(1_794_812_046), "2026-11-16 06:54:06 UTC");
        let told = [0, 59, 61, 7200, 90_000].map(|age| ago(1_000_000 - age, 1_000_000));
        assert_eq!(told, ["now", "59 s ago", "1 min ago", "2 h ago", "1 d ago"]);
        assert_eq!(ago(20, 10), "now", "clocks differ");
    }

    #[test]
    fn sequences_of_all_kinds_are_dead() {
        // Clear the screen, set the title, write to the clipboard, ask for the answer back; the
        // same with the newer control characters; a backspace and a bell.
        for sequence in [
            "\u{1b}[2J\u{1b}[1;1H",
            "\u{1b}]0;title\u{7}",
            "\u{1b}]52;c;aGFmdA==\u{1b}\\",
            "\u{1b}P$q\u{1b}\\\u{1b}[6n\u{1b}c",
            "\u{9b}31m\u{9d}0;t\u{9c}\u{90}",
            "\u{8}\u{8}\u{7}\u{7f}\u{0}",
        ] {
            let shown = printable(sequence);
            assert!(!shown.chars().any(char::is_control), "{shown:?}");
        }
    }
}

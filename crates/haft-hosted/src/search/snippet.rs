//! What is shown of a passage.

/// Put before what was found. Texts hold no control characters, so neither of these.
pub(super) const BEGIN: char = '\u{1}';

/// Put behind what was found.
pub(super) const END: char = '\u{2}';

/// The longest line that is shown, in characters.
const MAX_CHARS: usize = 240;

/// How much of a long line is shown before what was found in it, in characters.
const BEFORE: usize = 60;

/// Some lines of a file, and the number of the one that counts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Snippet {
    pub(super) line: u32,
    /// The lines with their numbers.
    pub(super) text: String,
}

/// The line of a passage in which most was found, with those before and behind it.
pub(super) fn snippet(marked: &str, first_line: u32) -> Snippet {
    let lines: Vec<&str> = marked.lines().collect();
    // A mark may go over several lines; the one in which it begins counts.
    let marks = |line: &str| line.matches(BEGIN).count();
    let mut best = 0;
    for (at, line) in lines.iter().enumerate() {
        if marks(line) > lines.get(best).map_or(0, |best| marks(best)) {
            best = at;
        }
    }
    let number = |at: usize| first_line.saturating_add(u32::try_from(at).unwrap_or(u32::MAX));
    let shown = lines.iter().enumerate();
    let shown = shown
        .skip(best.saturating_sub(1))
        .take(if best == 0 { 2 } else { 3 });
    let shown: Vec<_> = shown
        .map(|(at, line)| (number(at), cut(line)))
        .filter(|(at, line)| !line.is_empty() || *at == number(best))
        .map(|(at, line)| format!("{at}: {line}"))
        .collect();
    Snippet {
        line: number(best),
        text: shown.join("\n"),
    }
}

/// A line without marks and not too long, with what was found first in it.
fn cut(line: &str) -> String {
    let line = line.trim_end();
    let found = line.find(BEGIN).unwrap_or(0);
    let before = line[..found].chars().count();
    let plain: Vec<char> = line
        .chars()
        .filter(|c| !matches!(*c, BEGIN | END))
        .collect();
    if plain.len() <= MAX_CHARS {
        return plain.into_iter().collect();
    }
    let start = before.saturating_sub(BEFORE).min(plain.len() - MAX_CHARS);
    let end = start + MAX_CHARS;
    let shown: String = plain[start..end].iter().collect();
    let left = if start > 0 { "…" } else { "" };
    let right = if end < plain.len() { "…" } else { "" };
    format!("{left}{shown}{right}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str) -> String {
        text.replace('<', &BEGIN.to_string())
            .replace('>', &END.to_string())
    }

    #[test]
    fn the_line_with_most_in_it_counts_and_its_neighbours_are_shown() {
        let text = marked("a\nb <x>\n<x> c <y>\nd\ne");
        let expected = Snippet {
            line: 12,
            text: "11: b x\n12: x c y\n13: d".into(),
        };
        assert_eq!(snippet(&text, 10), expected);
    }

    #[test]
    fn a_passage_without_marks_shows_its_beginning() {
        let shown = snippet("title\n\ntext", 1);
        assert_eq!((shown.line, shown.text.as_str()), (1, "1: title"));
        assert_eq!(snippet("", 1).line, 1);
    }

    #[test]
    fn a_long_line_is_cut_around_what_was_found() {
        let text = marked(&format!("{}<needle>{}", "ä".repeat(1000), "ö".repeat(1000)));
        let shown = snippet(&text, 1).text;
        assert!(shown.contains("needle") && shown.starts_with("1: …ä") && shown.ends_with("ö…"));
        assert_eq!(shown.chars().count(), "1: ……".chars().count() + MAX_CHARS);
    }
}

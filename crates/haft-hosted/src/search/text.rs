//! What of a file is searched.

use std::borrow::Cow;

/// How many lines make a passage, unless it is long before.
const LINES: u32 = 30;

/// From how many lines on an empty one ends a passage.
const FEWEST_LINES: u32 = 12;

/// How long a passage gets, in bytes, before it ends; a longer line is cut into several.
const BYTES: usize = 3_000;

/// Some lines of a file: what is found together, and shown from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Passage<'t> {
    /// The number of its first line, from 1.
    pub(super) first_line: u32,
    pub(super) text: &'t str,
}

/// The text of a file; none if it is not text, or is a private key.
///
/// Control characters become blanks: nothing of a file can disturb a terminal, or be taken for the
/// marks that the index puts around what it found.
pub(super) fn text_of(bytes: &[u8]) -> Option<Cow<'_, str>> {
    if bytes.contains(&0) {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let start = text.trim_start();
    let first = start.lines().next().unwrap_or_default();
    if first.starts_with("-----BEGIN") && first.contains("PRIVATE KEY") {
        return None;
    }
    let disturbs = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(disturbs) {
        return Some(Cow::Borrowed(text));
    }
    let clean = text.chars().map(|c| if disturbs(c) { ' ' } else { c });
    Some(Cow::Owned(clean.collect()))
}

/// The passages of a text, in order. An empty text has one, so that the file is found by its name.
pub(super) fn passages(text: &str) -> Vec<Passage<'_>> {
    let mut passages = Vec::new();
    let (mut start, mut end, mut first_line, mut line) = (0, 0, 1, 1_u32);
    for piece in text.split_inclusive('\n').flat_map(pieces) {
        end += piece.len();
        let ends_line = piece.ends_with('\n');
        let lines = line - first_line + 1;
        let is_long = end - start >= BYTES || lines >= LINES;
        let is_paragraph = lines >= FEWEST_LINES && piece.trim().is_empty();
        line = line.saturating_add(u32::from(ends_line));
        if is_long || (ends_line && is_paragraph) {
            let text = &text[start..end];
            passages.push(Passage { first_line, text });
            (start, first_line) = (end, line);
        }
    }
    if start < end || passages.is_empty() {
        let text = &text[start..];
        passages.push(Passage { first_line, text });
    }
    passages
}

/// A line in pieces that are not too long, cut between words where there are any.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, behind) = rest.split_at(end_of_piece(rest));
        rest = behind;
        Some(piece)
    })
}

fn end_of_piece(line: &str) -> usize {
    if line.len() <= BYTES {
        return line.len();
    }
    let end = line.floor_char_boundary(BYTES);
    match line[..end].rfind(char::is_whitespace) {
        Some(blank) if blank > BYTES / 2 => line.ceil_char_boundary(blank + 1),
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_told() {
        assert_eq!(text_of(b"a\0b"), None);
        assert_eq!(text_of(b"\xff\xfea"), None);
        assert_eq!(text_of(b"\n-----BEGIN RSA PRIVATE KEY-----\nabc"), None);
        assert_eq!(
            text_of("\u{feff}a\r\nb\u{1b}[0m".as_bytes()).as_deref(),
            Some("a \nb [0m")
        );
    }

    #[test]
    fn a_passage_ends_at_a_paragraph_if_it_can() {
        let text = format!("{}\n{}", "a\n".repeat(15), "b\n".repeat(40));
        let passages = passages(&text);
        let lines: Vec<_> = passages.iter().map(|passage| passage.first_line).collect();
        assert_eq!(lines, [1, 17, 47]);
    }

    #[test]
    fn the_parts_of_a_long_line_have_one_number() {
        let text = format!("first\n{}\nlast\n", "word ".repeat(2000));
        let passages = passages(&text);
        assert!(
            passages
                .iter()
                .all(|passage| passage.text.len() <= 2 * BYTES)
        );
        assert!(
            passages
                .iter()
                .filter(|passage| passage.first_line == 2)
                .count()
                >= 2
        );
        let last = passages.last().unwrap();
        let within = u32::try_from(last.text.matches('\n').count()).unwrap();
        assert!(last.text.ends_with("last\n"));
        assert_eq!(last.first_line + within - 1, 3);
    }

    #[test]
    fn an_empty_file_has_one_passage() {
        let only = Passage {
            first_line: 1,
            text: "",
        };
        assert_eq!(passages(""), [only]);
    }

    proptest! {
        #[test]
        fn passages_make_up_the_text_and_know_their_lines(
            text in prop::collection::vec("[a-z ü\n]{0,200}|\n{0,5}|x{0,9000}", 0..12)
        ) {
            let text = text.concat();
            let mut before = String::new();
            for passage in passages(&text) {
                let line = before.matches('\n').count() + 1;
                prop_assert_eq!(passage.first_line as usize, line);
                before.push_str(passage.text);
            }
            prop_assert_eq!(before, text);
        }
    }
}

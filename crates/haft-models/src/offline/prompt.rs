//! What stands in a message: words, numbers and quoted strings, with their places.

use std::ops::Range;

/// At most so much of a message is read; the rest is not looked at.
const READ_BYTES: usize = 32 * 1024;

/// A message and what stands in it.
#[derive(Debug)]
pub(super) struct Prompt<'t> {
    pub(super) text: &'t str,
    /// Words and numbers outside of quotes, in order.
    pub(super) words: Vec<Word<'t>>,
    /// What stands between quotes, without them.
    pub(super) quotes: Vec<Word<'t>>,
}

/// A stretch of the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word<'t> {
    pub(super) text: &'t str,
    pub(super) lower: String,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl<'t> Prompt<'t> {
    pub(super) fn read(text: &'t str) -> Self {
        let text = beginning(text);
        let quotes = quotes(text);
        let mut words = Vec::new();
        let mut from = 0;
        // A quote's own marks are in the gap, and are trimmed like all punctuation.
        let gaps = quotes.iter().map(|quote| (quote.start, quote.end));
        for (start, end) in gaps.chain([(text.len(), text.len())]) {
            split_words(text, from..start, &mut words);
            from = end;
        }
        Self {
            text,
            words,
            quotes,
        }
    }

    /// The words within a range.
    pub(super) fn words_in(&self, range: &Range<usize>) -> &[Word<'t>] {
        let first = self.words.partition_point(|word| word.start < range.start);
        let last = self.words.partition_point(|word| word.start < range.end);
        &self.words[first..last.max(first)]
    }

    /// The quoted strings within a range.
    pub(super) fn quotes_in(&self, range: &Range<usize>) -> &[Word<'t>] {
        let first = self
            .quotes
            .partition_point(|quote| quote.start < range.start);
        let last = self.quotes.partition_point(|quote| quote.start < range.end);
        &self.quotes[first..last.max(first)]
    }

    /// Whether a place is inside a quoted string.
    pub(super) fn is_quoted(&self, at: usize) -> bool {
        let next = self.quotes.partition_point(|quote| quote.end <= at);
        self.quotes.get(next).is_some_and(|quote| quote.start <= at)
    }
}

/// As much of a text as is read, to the end of a word: half a word would be a value made up.
fn beginning(text: &str) -> &str {
    if text.len() <= READ_BYTES {
        return text;
    }
    let read = &text[..text.floor_char_boundary(READ_BYTES)];
    let end = read.rfind(char::is_whitespace).unwrap_or(0);
    &read[..end]
}

impl Word<'_> {
    /// The number that the word is, with or without a unit behind it.
    pub(super) fn number(&self) -> Option<serde_json::Number> {
        let digits = self.text.trim_start_matches(['$', '€', '£', '#', '(']);
        let mut seen_dot = false;
        let mut end = 0;
        for (at, character) in digits.char_indices() {
            let continues = match character {
                '0'..='9' => true,
                '-' => at == 0,
                // A dot counts only between digits.
                '.' if !seen_dot => {
                    seen_dot = true;
                    digits[at + 1..].starts_with(|next: char| next.is_ascii_digit())
                }
                _ => false,
            };
            if !continues {
                break;
            }
            end = at + character.len_utf8();
        }
        let rest = &digits[end..];
        // `5km`, `20°C` and `30%` are numbers; `12:30`, `2026-01-01` and `1/2` are not.
        if rest.contains(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let digits = &digits[..end];
        match digits.parse::<i64>() {
            Ok(whole) => Some(whole.into()),
            Err(_) => serde_json::Number::from_f64(digits.parse().ok()?),
        }
    }

    pub(super) fn is_capitalised(&self) -> bool {
        self.text.starts_with(char::is_uppercase)
    }
}

fn split_words<'t>(text: &'t str, range: Range<usize>, words: &mut Vec<Word<'t>>) {
    let stretch = &text[range.clone()];
    let pieces = stretch.split_whitespace().flat_map(|piece| {
        // An address keeps what would part words elsewhere.
        let is_address = piece.contains("://");
        piece.split(move |c: char| !is_address && ",;!?=".contains(c))
    });
    for piece in pieces {
        let trimmed =
            piece.trim_matches(|c: char| !(c.is_alphanumeric() || "-+*/^%$€£#@_°".contains(c)));
        if trimmed.is_empty() {
            continue;
        }
        // Both are slices of `text`, so the difference of their places is the offset.
        let start = trimmed.as_ptr() as usize - text.as_ptr() as usize;
        words.push(word(text, start..start + trimmed.len()));
    }
}

fn word(text: &str, range: Range<usize>) -> Word<'_> {
    let stretch = &text[range.clone()];
    Word {
        text: stretch,
        lower: stretch.to_lowercase(),
        start: range.start,
        end: range.end,
    }
}

/// What stands between quotes. A mark that nothing closes is no quote.
fn quotes(text: &str) -> Vec<Word<'_>> {
    const MARKS: [(char, char); 6] = [
        ('"', '"'),
        ('\'', '\''),
        ('`', '`'),
        ('“', '”'),
        ('„', '“'),
        ('«', '»'),
    ];
    let mut found = Vec::new();
    // A mark that nothing closes from here on is not closed later either: looked for only once.
    let mut is_unclosed = [false; MARKS.len()];
    let mut previous = ' ';
    let mut resume = 0;
    for (at, character) in text.char_indices() {
        if at < resume {
            previous = character;
            continue;
        }
        let mark = MARKS.iter().position(|(open, _)| *open == character);
        // An apostrophe inside a word opens nothing.
        let opens = character != '\'' || !previous.is_alphanumeric();
        previous = character;
        let Some(mark) = mark.filter(|mark| opens && !is_unclosed[*mark]) else {
            continue;
        };
        let start = at + character.len_utf8();
        let close = MARKS[mark].1;
        match text[start..].find(close) {
            Some(length) => {
                found.push(word(text, start..start + length));
                resume = start + length + close.len_utf8();
            }
            None => is_unclosed[mark] = true,
        }
    }
    found.retain(|quote| !quote.text.trim().is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_found_and_apostrophes_are_not() {
        let prompt = Prompt::read("don't say \"a b\" or 'c' or “d”, it's \"open");
        let quotes: Vec<_> = prompt.quotes.iter().map(|quote| quote.text).collect();
        assert_eq!(quotes, ["a b", "c", "d"]);
        let words: Vec<_> = prompt.words.iter().map(|word| word.text).collect();
        assert_eq!(words, ["don't", "say", "or", "or", "it's", "open"]);
        assert!(prompt.is_quoted(12));
        assert!(!prompt.is_quoted(1));
    }

    #[test]
    fn numbers_are_read_with_units_and_dates_are_not() {
        let numbers = |text| -> Vec<String> {
            let prompt = Prompt::read(text);
            let numbers = prompt.words.iter().filter_map(Word::number);
            numbers.map(|number| number.to_string()).collect()
        };
        assert_eq!(
            numbers("5, -2.5 and 20°C for $30. 7% 3km"),
            ["5", "-2.5", "20", "30", "7", "3"]
        );
        assert!(numbers("2026-01-01 12:30 1/2 v2 s3 - -- .").is_empty());
        assert_eq!(numbers("99999999999999999999"), ["1e+20"]);
    }
}

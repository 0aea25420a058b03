//! The parts of a message: sentences, and what `and` or `then` join.

use std::ops::Range;

use super::prompt::Prompt;

/// At most so many parts are looked at.
const MAX_PARTS: usize = 32;

/// The stretches of a message that may each ask for something, in order.
pub(super) fn parts(prompt: &Prompt<'_>) -> Vec<Range<usize>> {
    let mut ends: Vec<(usize, usize)> = sentence_ends(prompt).collect();
    let joints = prompt.words.iter();
    let joints = joints.filter(|word| matches!(word.lower.as_str(), "and" | "then"));
    ends.extend(joints.map(|word| (word.start, word.end)));
    ends.push((prompt.text.len(), prompt.text.len()));
    ends.sort_unstable();
    let mut parts = Vec::new();
    let mut start = 0;
    for (end, next) in ends {
        let part = start..end;
        start = next.max(start);
        let says_something =
            !prompt.words_in(&part).is_empty() || !prompt.quotes_in(&part).is_empty();
        if says_something && parts.len() < MAX_PARTS {
            parts.push(part);
        }
    }
    parts
}

/// Where sentences end, and where the next may begin.
fn sentence_ends(prompt: &Prompt<'_>) -> impl Iterator<Item = (usize, usize)> {
    let text = prompt.text;
    text.char_indices().filter_map(move |(at, character)| {
        let next = at + character.len_utf8();
        let ends = match character {
            '\n' | ';' | '。' | '？' | '！' => true,
            // Inside of a number or an address they end nothing.
            '.' | '?' | '!' => text[next..].chars().next().is_none_or(char::is_whitespace),
            _ => false,
        };
        (ends && !prompt.is_quoted(at)).then_some((at, next))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<&str> {
        let prompt = Prompt::read(text);
        let parts = parts(&prompt).into_iter();
        parts.map(|part| prompt.text[part].trim()).collect()
    }

    #[test]
    fn sentences_and_joints_part_a_message() {
        assert_eq!(
            split("Add 2.5 to it. Then send \"a. b and c\", and then stop! ... Ok?"),
            ["Add 2.5 to it", "send \"a. b and c\",", "stop", "Ok"]
        );
        assert!(split(" ?! and then ...").is_empty());
    }

    #[test]
    fn there_is_a_limit_to_parts() {
        assert_eq!(split(&"go. ".repeat(1000)).len(), MAX_PARTS);
    }
}

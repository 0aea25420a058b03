//! A whole request as the queries of its steps (`tool-selection.md` §6.2).

use super::request::{MAX_QUERIES, MAX_QUERY_CHARS};

/// Words that join one step to the next, between blanks.
const JOINTS: [&str; 9] = [
    " and then ",
    " and also ",
    " after that ",
    " afterwards ",
    " as well as ",
    " then ",
    " and finally ",
    " finally ",
    " also ",
];
/// What is shorter is no step.
const SHORTEST: usize = 8;

/// The steps that a person's request asks for, then the request as a whole: queries for one search.
///
/// For where nobody asks step by step. It goes by the borders of sentences and lists and by words like
/// "and then"; no model is asked.
///
/// ```
/// use haft_catalog::search::split_request;
/// let text = "Book a table for two, and then send the address to Kim. What is the weather there?";
/// assert_eq!(
///     split_request(text),
///     ["Book a table for two", "send the address to Kim", "What is the weather there", text]
/// );
/// assert_eq!(split_request("list my files"), ["list my files"]);
/// ```
pub fn split_request(text: &str) -> Vec<String> {
    let whole: String = text.trim().chars().take(MAX_QUERY_CHARS).collect();
    let mut steps: Vec<String> = Vec::new();
    for line in whole.lines() {
        for sentence in sentences(line) {
            for step in at_joints(sentence) {
                let step = step.trim_matches(|c: char| !c.is_alphanumeric() && !is_quote(c));
                if step.chars().count() >= SHORTEST && !steps.iter().any(|it| it == step) {
                    steps.push(step.to_owned());
                }
            }
        }
    }
    steps.truncate(MAX_QUERIES - 1);
    if steps.len() < 2 {
        return vec![whole];
    }
    steps.push(whole);
    steps
}

fn is_quote(c: char) -> bool {
    matches!(c, '`' | '"' | '\'')
}

/// Ends where a full stop, a question mark or the like is followed by a blank. Full stops inside of
/// names and numbers are none.
fn sentences(line: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    let mut characters = line.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let is_wide = matches!(c, '。' | '！' | '？' | '；');
        let ends = matches!(c, '.' | '?' | '!' | ';')
            && characters
                .peek()
                .is_none_or(|(_, next)| next.is_whitespace());
        if is_wide || ends {
            let end = at + c.len_utf8();
            sentences.push(&line[start..end]);
            start = end;
        }
    }
    sentences.push(&line[start..]);
    sentences
}

fn at_joints(sentence: &str) -> Vec<&str> {
    // ASCII only, so that places stay the same.
    let lower = sentence.to_ascii_lowercase();
    let mut parts = Vec::new();
    let mut start = 0;
    while let Some((at, length)) = next_joint(&lower, start) {
        parts.push(&sentence[start..at]);
        // The blank at its end may begin the next one.
        start = at + length - 1;
    }
    parts.push(&sentence[start..]);
    parts
}

/// The first joint, the longest of those at one place.
fn next_joint(lower: &str, from: usize) -> Option<(usize, usize)> {
    JOINTS
        .iter()
        .filter_map(|joint| Some((from + lower[from..].find(joint)?, joint.len())))
        .min_by_key(|&(at, length)| (at, std::cmp::Reverse(length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_sentences_are_steps() {
        let text = "Please:\n- read config.toml\n- raise the limit to 2.5; restart the service\n";
        let steps = [
            "Please",
            "read config.toml",
            "raise the limit to 2.5",
            "restart the service",
        ];
        assert_eq!(split_request(text)[..3], steps[1..]);
    }

    #[test]
    fn the_whole_comes_last_and_nothing_is_too_much() {
        let text =
            "open the door number one. ".repeat(3) + &"step after step and then ".repeat(100);
        let steps = split_request(&text);
        assert!(steps.len() <= MAX_QUERIES);
        assert!(
            steps
                .iter()
                .all(|step| step.chars().count() <= MAX_QUERY_CHARS)
        );
        assert!(text.starts_with(steps.last().unwrap()));
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(split_request("  "), [""]);
    }
}

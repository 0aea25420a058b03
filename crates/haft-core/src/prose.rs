//! Author text: doc comments turned into descriptions, descriptions cut to briefs.

use crate::annotations::Annotations;

/// Turns the lines of a doc comment into a description: the leading blank of each line goes, the
/// lines of a paragraph are joined, paragraphs, lists and code blocks stay.
///
/// ```
/// use haft_core::doc_text;
/// assert_eq!(doc_text(" Get the\n weather.\n\n Nearest station.\n"), "Get the weather.\n\nNearest station.");
/// ```
pub fn doc_text(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut in_code = false;
    let mut joinable = false;
    for line in raw.lines() {
        let line = line.strip_prefix(' ').unwrap_or(line).trim_end();
        let starts_block = in_code || starts_markdown_block(line);
        if is_fence(line) {
            in_code = !in_code;
        }
        if !text.is_empty() {
            text.push(if joinable && !starts_block && !line.is_empty() {
                ' '
            } else {
                '\n'
            });
        }
        text.push_str(if in_code || starts_block {
            line
        } else {
            line.trim_start()
        });
        joinable = !in_code && !is_fence(line) && !line.is_empty() && !is_heading(line);
    }
    collapse_blank_lines(text.trim())
}

/// The brief of a description: its first line, or the first sentence of that line if it is longer
/// than 120 characters; at most 120 characters, the last one `…` if it was cut.
///
/// ```
/// use haft_core::brief_of;
/// assert_eq!(brief_of("Get the weather.\n\nNearest station."), "Get the weather.");
/// ```
pub fn brief_of(description: &str) -> String {
    const MAX: usize = Annotations::MAX_BRIEF_CHARS;
    let line = description
        .trim_start()
        .lines()
        .next()
        .unwrap_or_default()
        .trim();
    if line.chars().count() <= MAX {
        return line.to_owned();
    }
    let sentence = first_sentence(line);
    if sentence.char_indices().nth(MAX).is_none() {
        sentence.to_owned()
    } else {
        let mut brief: String = sentence.chars().take(MAX - 1).collect();
        brief.truncate(brief.trim_end().len());
        brief.push('…');
        brief
    }
}

fn first_sentence(line: &str) -> &str {
    line.match_indices(['.', '!', '?'])
        .map(|(at, mark)| at + mark.len())
        .find(|&end| line[end..].starts_with(char::is_whitespace))
        .map_or(line, |end| &line[..end])
}

fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

fn is_heading(line: &str) -> bool {
    line.starts_with('#')
}

fn starts_markdown_block(line: &str) -> bool {
    let line = line.trim_start();
    let numbered = line.split_once(['.', ')']).is_some_and(|(digits, rest)| {
        !digits.is_empty()
            && digits.len() <= 3
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && rest.starts_with(' ')
    });
    numbered
        || is_fence(line)
        || is_heading(line)
        || ["- ", "* ", "+ ", "> ", "| "]
            .iter()
            .any(|mark| line.starts_with(mark))
}

fn collapse_blank_lines(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut newlines = 0;
    for c in text.chars() {
        newlines = if c == '\n' { newlines + 1 } else { 0 };
        if newlines <= 2 {
            result.push(c);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_paragraph_are_joined_and_paragraphs_kept() {
        assert_eq!(
            doc_text(
                " Get the current weather\n for a location.\n\n\n Uses the\n nearest station.\n"
            ),
            "Get the current weather for a location.\n\nUses the nearest station."
        );
    }

    #[test]
    fn lists_and_code_keep_their_lines() {
        assert_eq!(
            doc_text(
                " Units:\n - celsius\n - fahrenheit\n   or so\n ```\n a = 1\n\n b = 2\n ```\n after"
            ),
            "Units:\n- celsius\n- fahrenheit or so\n```\na = 1\n\nb = 2\n```\nafter"
        );
    }

    #[test]
    fn a_short_first_line_is_the_brief() {
        assert_eq!(brief_of("One. Two.\nThree."), "One. Two.");
    }

    #[test]
    fn a_long_first_line_gives_its_first_sentence() {
        let description = format!("Version 1.2 reads files. {}", "x".repeat(200));
        assert_eq!(brief_of(&description), "Version 1.2 reads files.");
    }

    #[test]
    fn a_long_sentence_is_cut_at_120_characters_with_an_ellipsis() {
        let brief = brief_of(&"ä".repeat(500));
        assert_eq!(brief.chars().count(), 120);
        assert!(brief.ends_with('…'));
    }
}

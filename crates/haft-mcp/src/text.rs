//! Foreign prose without what nobody sees.
//!
//! A description is read by a person and by a model. Characters that only the model sees carry
//! orders past the person, so they go before anything else is done with the text.

/// Whether a reader would not see this character, or would see others differently because of it.
///
/// Tabs and line breaks are seen.
pub(crate) fn is_hidden(character: char) -> bool {
    matches!(character,
        // Controls, C0 and C1.
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // What joins, fills or breaks without a trace.
        | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{3164}' | '\u{ffa0}'
        // Zero width, marks of direction, separators of lines, overrides, isolates.
        | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        // Selectors of variants, the byte order mark, annotations between lines.
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
        // Controls of shorthand and of music.
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        // Tags and the other selectors.
        | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The text without hidden characters. `\r\n` becomes `\n`.
///
/// ```
/// assert_eq!(haft_mcp::visible("Reads\u{200b} a\u{202e} file\u{e0041}."), "Reads a file.");
/// ```
pub fn visible(text: &str) -> String {
    text.chars().filter(|it| !is_hidden(*it)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_reader_sees_stays() {
        for text in ["", "plain", "a\tb\nc", "größe – 日本語 – עברית – 😀", "½ ²"]
        {
            assert_eq!(visible(text), text);
        }
    }

    #[test]
    fn hidden_orders_go() {
        let tags: String = "ignore"
            .bytes()
            .map(|byte| char::from_u32(0xe0000 + u32::from(byte)).unwrap())
            .collect();
        let text = format!("a{tags}b\u{200d}\u{1b}[31m\u{202e}\u{2066}\u{feff}\u{fe01}\u{85}c\r\n");
        assert_eq!(visible(&text), "ab[31mc\n");
    }

    proptest! {
        #[test]
        fn cleaning_leaves_nothing_hidden_and_takes_nothing_else(text in any::<String>()) {
            let clean = visible(&text);
            prop_assert!(!clean.chars().any(is_hidden));
            prop_assert_eq!(&visible(&clean), &clean);
            let kept: String = text.chars().filter(|it| !is_hidden(*it)).collect();
            prop_assert_eq!(clean, kept);
        }
    }
}

//! Text of servers without characters that deceive.
//!
//! A description is read by a person and by a model. Characters that only the model sees carry instructions
//! past the person, so they are removed before anything else is done with the text. Some invisible characters
//! are part of ordinary writing and stay where they belong: the joiners in emoji, in Persian and in Indic
//! scripts, the selectors between the two forms of an emoji.

/// Whether a character is never visible by itself, or changes how others are shown, wherever it stands.
///
/// Tabs and line breaks are visible. The joiners and selectors of [`is_joining`] depend on their neighbours.
fn is_hidden(character: char) -> bool {
    matches!(character,
        // Controls, C0 and C1.
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Soft hyphen, joiners and fillers without a glyph.
        | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180e}' | '\u{3164}' | '\u{ffa0}'
        // Zero width, marks of direction, separators of lines, overrides, isolates.
        | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        // Selectors of variants other than those of emoji, the byte order mark, annotations between lines.
        | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
        // Controls of shorthand and of music.
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        // Tags and the other selectors.
        | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Whether a character joins or selects, so that its neighbours decide whether it belongs there.
fn is_joining(character: char) -> bool {
    matches!(
        character,
        '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}' | '\u{180b}'..='\u{180d}' | '\u{180f}'
    )
}

/// The text without deceptive characters. `\r\n` becomes `\n`.
///
/// ```
/// assert_eq!(haft_mcp::visible("Reads\u{200b} a\u{202e} file\u{e0041}."), "Reads a file.");
/// assert_eq!(haft_mcp::visible("👩\u{200d}💻 می\u{200c}خواهم"), "👩\u{200d}💻 می\u{200c}خواهم");
/// ```
pub fn visible(text: &str) -> String {
    // Nearly all text has none of these.
    if text
        .bytes()
        .all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t'))
    {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().filter(|it| !is_hidden(*it)).peekable();
    while let Some(character) = rest.next() {
        if !is_joining(character) || belongs(character, &shown, rest.peek().copied()) {
            shown.push(character);
        }
    }
    shown
}

/// Whether a joining character is ordinary writing between these neighbours.
fn belongs(character: char, before: &str, after: Option<char>) -> bool {
    let Some(previous) = before.chars().next_back() else {
        return false;
    };
    match character {
        '\u{200d}' if is_emoji_part(previous) => {
            ends_in_emoji(before) && after.is_some_and(is_emoji)
        }
        // Between or behind letters, one at a time.
        '\u{200c}' | '\u{200d}' => is_of_joining_script(previous),
        // Behind a digit only in a keycap.
        '\u{fe0e}' | '\u{fe0f}' => match previous {
            '0'..='9' | '#' | '*' => after == Some('\u{20e3}'),
            previous => is_emoji(previous),
        },
        _ => matches!(previous, '\u{1820}'..='\u{18aa}'),
    }
}

fn ends_in_emoji(text: &str) -> bool {
    let base = text.chars().rev().find(|it| !is_modifier(*it));
    base.is_some_and(is_emoji)
}

fn is_emoji_part(character: char) -> bool {
    is_emoji(character) || is_modifier(character)
}

/// The selector of the coloured form, and the tones of skin.
fn is_modifier(character: char) -> bool {
    matches!(character, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}')
}

/// Whether a character is a symbol that has or may have the form of an emoji.
fn is_emoji(character: char) -> bool {
    matches!(character,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
        | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{24c2}'
        | '\u{25a0}'..='\u{27bf}' | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}'
        | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}'
    )
}

/// Whether a letter or mark is of a script whose words need joiners: Arabic and its relatives, the scripts of
/// India and South-East Asia, Mongolian.
fn is_of_joining_script(character: char) -> bool {
    let is_of_it = matches!(character,
        '\u{620}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{f00}'..='\u{fff}'
        | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{1820}'..='\u{18aa}'
        | '\u{1900}'..='\u{1cff}' | '\u{a800}'..='\u{a8ff}' | '\u{a930}'..='\u{abff}'
        | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' | '\u{11000}'..='\u{11fff}'
    );
    is_of_it && !is_joining(character)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn visible_text_stays() {
        for text in [
            "",
            "plain",
            "a\tb\nc",
            "größe – 日本語 – עברית – 😀",
            "½ ²",
            "👨\u{200d}👩\u{200d}👧\u{200d}👦",
            "👩🏽\u{200d}🚒",
            "❤\u{fe0f}\u{200d}🔥 ☀\u{fe0e} 1\u{fe0f}\u{20e3}",
            "🏳\u{fe0f}\u{200d}🌈",
            "می\u{200c}خواهم",
            "क्\u{200d}ष क्\u{200c}ष",
            "ශ්\u{200d}රී",
        ] {
            assert_eq!(visible(text), text);
        }
    }

    #[test]
    fn hidden_instructions_are_removed() {
        let tags: String = "ignore"
            .bytes()
            .map(|byte| char::from_u32(0xe0000 + u32::from(byte)).unwrap())
            .collect();
        let text = format!("a{tags}b\u{200d}\u{1b}[31m\u{202e}\u{2066}\u{feff}\u{fe01}\u{85}c\r\n");
        assert_eq!(visible(&text), "ab[31mc\n");
    }

    #[test]
    fn joiners_out_of_place_are_removed() {
        for (text, expected) in [
            ("pass\u{200d}word", "password"),
            ("pass\u{200c}word", "password"),
            ("a\u{fe0f}b", "ab"),
            ("1\u{fe0f}2", "12"),
            ("\u{200d}", ""),
            ("😀\u{200d}\u{200d}😀", "😀\u{200d}😀"),
            ("😀\u{200d}a", "😀a"),
            ("😀\u{200c}😀", "😀😀"),
            ("می\u{200c}\u{200c}\u{200d}خ", "می\u{200c}خ"),
            ("😀\u{fe0f}\u{fe0f}\u{fe0e}", "😀\u{fe0f}"),
            ("🏴\u{e0067}\u{e0062}\u{e007f}", "🏴"),
        ] {
            assert_eq!(visible(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn cleaning_leaves_nothing_hidden_and_removes_nothing_else(
            text in proptest::collection::vec(
                prop_oneof![
                    any::<char>(),
                    proptest::sample::select(vec!['\u{200c}', '\u{200d}', '\u{fe0f}', '😀', 'ی', '\u{200b}', '1']),
                ],
                0..20,
            ).prop_map(String::from_iter),
        ) {
            let clean = visible(&text);
            prop_assert!(!clean.chars().any(is_hidden));
            prop_assert_eq!(&visible(&clean), &clean);
            let plain = |text: &str| -> String {
                text.chars().filter(|it| !is_hidden(*it) && !is_joining(*it)).collect()
            };
            prop_assert_eq!(plain(&clean), plain(&text));
        }
    }
}

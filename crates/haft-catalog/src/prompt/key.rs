//! Keys of sections and prompts.

/// The longest key.
const MAX_BYTES: usize = 64;

/// Whether a text is a key: `^[a-z0-9][a-z0-9_-]{0,63}$`. Never a dot: a path is keys joined by
/// dots, and one that reads two ways could be advertised and then not be found.
pub(super) fn is_key(text: &str) -> bool {
    let follows = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    (1..=MAX_BYTES).contains(&text.len())
        && !text.starts_with(['_', '-'])
        && text.bytes().all(follows)
}

#[cfg(test)]
mod tests {
    use super::is_key;

    #[test]
    fn a_key_is_1_to_64_small_letters_digits_and_strokes() {
        for good in ["a", "0", "a-b_c", "2nd", &"x".repeat(64)] {
            assert!(is_key(good), "{good}");
        }
        for bad in [
            "",
            "a.b",
            "A",
            "_a",
            "-a",
            "a b",
            "ä",
            "a\n",
            &"x".repeat(65),
        ] {
            assert!(!is_key(bad), "{bad}");
        }
    }
}

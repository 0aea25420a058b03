//! Foreign text in messages: enough of it to recognise.

/// How much of a foreign text is shown.
const SHOWN_CHARS: usize = 100;

/// At most 100 characters of a text that may be anything, with `…` where it was cut.
///
/// ```
/// assert_eq!(haft_core::cut("short"), "short");
/// assert_eq!(haft_core::cut(&"x".repeat(500)).chars().count(), 101);
/// ```
pub fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

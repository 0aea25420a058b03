//! The input of a custom tool, read out of the arguments `{"input":"…"}` while the model writes them.

use serde_json::Value;

/// How much of the input is known.
#[derive(Debug, Default)]
pub(super) struct CustomInput {
    /// What was read, without escapes.
    text: String,
    /// How many bytes of the arguments were read; none before the text begins.
    read: Option<usize>,
    /// Whether the arguments have another form, or the text is over.
    is_over: bool,
}

impl CustomInput {
    /// What the arguments add to the input, by what they are so far.
    pub(super) fn advance(&mut self, written: &str) -> Option<String> {
        if self.is_over {
            return None;
        }
        let from = match self.read {
            Some(from) => from,
            None => match opening(written) {
                Opening::Text(from) => from,
                Opening::Unknown => return None,
                Opening::Other => {
                    self.is_over = true;
                    return None;
                }
            },
        };
        let rest = written.get(from..)?;
        let (length, is_over) = readable(rest);
        self.read = Some(from + length);
        let piece = format!("\"{}\"", rest.get(..length)?);
        let Ok(piece) = serde_json::from_str::<String>(&piece) else {
            self.is_over = true;
            return None;
        };
        self.is_over = is_over;
        self.text.push_str(&piece);
        Some(piece).filter(|piece| !piece.is_empty())
    }

    /// The whole input, and what of it was not given out before. Arguments of another form are the input
    /// themselves, unless a part of it was given out already.
    pub(super) fn finish(self, written: &str) -> (String, String) {
        let whole = match serde_json::from_str(written) {
            Ok(Value::Object(mut members)) => match members.remove("input") {
                Some(Value::String(input)) => input,
                _ => written.to_owned(),
            },
            _ => written.to_owned(),
        };
        match whole.strip_prefix(self.text.as_str()) {
            Some(rest) => {
                let rest = rest.to_owned();
                (whole, rest)
            }
            None => (self.text, String::new()),
        }
    }
}

enum Opening {
    /// The text begins here.
    Text(usize),
    /// Too little is known.
    Unknown,
    /// Something else.
    Other,
}

/// Where the text of `{"input":"…"}` begins.
fn opening(written: &str) -> Opening {
    let mut rest = written;
    for token in ["{", "\"input\"", ":", "\""] {
        rest = rest.trim_start();
        match rest.strip_prefix(token) {
            Some(behind) => rest = behind,
            None if token.starts_with(rest) => return Opening::Unknown,
            None => return Opening::Other,
        }
    }
    Opening::Text(written.len() - rest.len())
}

/// How much of a JSON text can be read although more may come, and whether it ends there.
fn readable(text: &str) -> (usize, bool) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let length = match byte {
            b'"' => return (at, true),
            b'\\' => match escape(&bytes[at..]) {
                Some(length) => length,
                None => return (at, false),
            },
            _ => 1,
        };
        at += length;
    }
    (at, false)
}

/// How long an escape is; none if not all of it is there.
fn escape(bytes: &[u8]) -> Option<usize> {
    if *bytes.get(1)? != b'u' {
        return Some(2);
    }
    let digits = bytes.get(2..6)?;
    let is_half = matches!(
        digits,
        [b'd' | b'D', b'8' | b'9' | b'a'..=b'b' | b'A'..=b'B', ..]
    );
    if !is_half {
        return Some(6);
    }
    // The other half of a surrogate pair belongs to it.
    bytes.get(6..12).map(|_| 12)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is given out of arguments that come in pieces of one character, and the whole input.
    fn told(arguments: &str) -> (String, String) {
        let mut input = CustomInput::default();
        let mut told = String::new();
        for (at, character) in arguments.char_indices() {
            let written = &arguments[..at + character.len_utf8()];
            told.extend(input.advance(written));
        }
        let (whole, rest) = input.finish(arguments);
        (told + &rest, whole)
    }

    #[test]
    fn pieces_add_up_to_the_input() {
        for text in [
            "",
            "ls -l\n\t\"x\" \\ é 😀",
            "*** Begin Patch\n+a\u{7f}\u{1}",
            "{\"input\":1}",
        ] {
            for arguments in [
                serde_json::json!({"input": text}).to_string(),
                format!(" {{ \"input\" :\n {} }}", Value::from(text)),
            ] {
                assert_eq!(told(&arguments), (text.into(), text.into()), "{arguments}");
            }
        }
        let pair = r#"{"input":"\ud83d\ude00\u00e9"}"#;
        assert_eq!(told(pair), ("😀é".into(), "😀é".into()));
    }

    #[test]
    fn pieces_come_before_the_end() {
        let mut input = CustomInput::default();
        assert_eq!(input.advance(r#"{"input":"a\"#).as_deref(), Some("a"));
        assert_eq!(input.advance(r#"{"input":"a\n"#).as_deref(), Some("\n"));
        assert_eq!(input.advance(r#"{"input":"a\nb"}"#).as_deref(), Some("b"));
    }

    #[test]
    fn arguments_of_another_form_are_the_input() {
        for arguments in ["ls", "[1]", r#"{"command":"ls"}"#, r#"{"input":1}"#, "{"] {
            assert_eq!(told(arguments), (arguments.into(), arguments.into()));
        }
        // What was given out cannot be taken back.
        let cut = r#"{"input":"a\nb"#;
        assert_eq!(told(cut), ("a\nb".into(), "a\nb".into()));
    }
}

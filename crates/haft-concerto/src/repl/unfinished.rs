//! Whether what was written so far goes on in the next line.

use crate::diagnostic::Diagnostics;
use crate::lex::{Punct, TokenKind, lex};
use crate::source::SourceMap;

/// More brackets than the parser takes within each other: nothing that follows makes it right.
const DEEPEST: i64 = 1024;

/// Whether a bracket, a string or a comment is open, or an operator stands at the end.
pub(super) fn is_unfinished(text: &str) -> bool {
    let mut map = SourceMap::new();
    let Ok(file) = map.add("", text.to_owned()) else {
        return false;
    };
    let mut diagnostics = Diagnostics::default();
    let lexed = lex(file, &mut diagnostics);
    let opens_here = |start: u32| {
        let rest = text.get(start as usize..).unwrap_or_default();
        ["\"\"\"", "/*", "r#"].iter().any(|it| rest.starts_with(it))
    };
    // What is wrong with it in another way is told, and not waited for.
    if let Some(wrong) = diagnostics.into_sorted().first() {
        return opens_here(wrong.span.start);
    }
    let mut depth = 0_i64;
    let mut last = None;
    for token in &lexed.tokens {
        let TokenKind::Punct(punct) = token.kind else {
            if token.kind != TokenKind::End {
                last = None;
            }
            continue;
        };
        match punct {
            Punct::ParenOpen | Punct::BraceOpen | Punct::BracketOpen => depth += 1,
            Punct::ParenClose | Punct::BraceClose | Punct::BracketClose => depth -= 1,
            _ => {}
        }
        last = Some(punct);
    }
    (1..=DEEPEST).contains(&depth) || (depth == 0 && last.is_some_and(wants_more))
}

/// Whether something must follow.
fn wants_more(punct: Punct) -> bool {
    !matches!(
        punct,
        Punct::ParenClose
            | Punct::BraceClose
            | Punct::BracketClose
            | Punct::Semicolon
            | Punct::Question
            | Punct::DotDot
            | Punct::ParenOpen
            | Punct::BraceOpen
            | Punct::BracketOpen
    )
}

#[cfg(test)]
mod tests {
    use super::is_unfinished;

    #[test]
    fn open_brackets_strings_and_operators_go_on() {
        for text in [
            "fn f() {",
            "[1,",
            "1 +",
            "let x =",
            "\"\"\"a\n",
            "/* what",
            "a |>",
            "r#\"a",
        ] {
            assert!(is_unfinished(text), "{text}");
        }
        for text in [
            "1",
            "fn f() {}",
            "f()?",
            "\"abc",
            "}",
            ")",
            "1 // {",
            "",
            "xs[1..]",
        ] {
            assert!(!is_unfinished(text), "{text}");
        }
    }

    #[test]
    fn what_nothing_can_make_right_is_not_waited_for() {
        assert!(is_unfinished(&"{".repeat(1000)));
        assert!(!is_unfinished(&"{".repeat(2000)));
    }
}

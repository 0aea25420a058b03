//! What was probably meant by somebody who knows another language: the help of a mistake in the syntax.

use super::Parser;
use crate::lex::{Keyword, Punct, TokenKind};
use crate::symbols::instead_of;

/// Words that begin something elsewhere, and are ordinary names here.
const WORDS: &[&str] = &[
    "and",
    "or",
    "not",
    "var",
    "val",
    "auto",
    "def",
    "function",
    "func",
    "fun",
    "lambda",
    "import",
    "from",
    "require",
    "include",
    "package",
    "switch",
    "case",
    "when",
    "class",
    "interface",
    "foreach",
    "do",
    "until",
    "elif",
    "elsif",
    "elseif",
    "raise",
    "except",
];

fn instead_of_word(word: &str) -> Option<&'static str> {
    match word {
        "new" => Some("write `Name { field: value }`, without `new`"),
        "then" => Some("write `if c { … } else { … }`"),
        "unless" => Some("write `if !c { … }`"),
        "public" | "private" | "export" | "static" => {
            Some("write `pub` in front of what others may use, or nothing")
        }
        _ if WORDS.contains(&word) => instead_of(word),
        _ => None,
    }
}

impl Parser<'_> {
    fn before(&self, count: usize) -> Option<TokenKind> {
        let at = self.at.checked_sub(count)?;
        Some(self.tokens[at].kind)
    }

    fn was(&self, count: usize, punct: Punct) -> bool {
        self.before(count) == Some(TokenKind::Punct(punct))
    }

    /// Help for a mistake at the word that is looked at, where something else was expected.
    pub(super) fn habit(&self, expected: &str) -> Option<&'static str> {
        let here = self.token();
        let is_ident = |kind| kind == TokenKind::Ident;
        let words = [
            (here.kind, here.span),
            (
                self.before(1).unwrap_or(TokenKind::End),
                self.previous_span(),
            ),
        ];
        let mut words = words.iter().filter(|(kind, _)| is_ident(*kind));
        if let Some(help) = words.find_map(|(_, span)| instead_of_word(self.file.slice(*span))) {
            return Some(help);
        }
        match here.kind {
            TokenKind::Keyword(keyword) => self.keyword_habit(keyword, expected),
            TokenKind::Punct(punct) => self.punct_habit(punct, expected),
            TokenKind::Str(_) | TokenKind::TextStart(_) if self.before(1).is_some_and(is_ident) => {
                Some("values are put into a text with `${…}`: `\"a ${x}\"`")
            }
            TokenKind::Int(_) if self.was(1, Punct::Dot) => {
                Some("the parts of a tuple are its elements: `t[0]`")
            }
            _ if self.was(1, Punct::Question) => Some("write `if c { a } else { b }`"),
            _ => None,
        }
        .or_else(|| self.missing_semicolon(expected))
    }

    fn missing_semicolon(&self, expected: &str) -> Option<&'static str> {
        let line = |at: u32| self.file.position(at).line;
        let is_later = line(self.previous_span().end) < line(self.token().span.start);
        let is_end = is_later || self.token().kind == TokenKind::End;
        (is_end && expected.starts_with("`;`")).then_some("statements end with `;`")
    }

    fn keyword_habit(&self, keyword: Keyword, expected: &str) -> Option<&'static str> {
        Some(match (keyword, self.before(1)?) {
            (Keyword::Let, TokenKind::Keyword(Keyword::If)) => {
                "there is no `if let`: write `match x { Some(y) => …, _ => … }`"
            }
            (Keyword::Let, TokenKind::Keyword(Keyword::While)) => {
                "there is no `while let`: write `loop { match x { Some(y) => …, _ => break } }`"
            }
            (Keyword::Let, TokenKind::Punct(Punct::ParenOpen)) => "write `for i in 0..n { … }`",
            (Keyword::In, _) if expected.starts_with("`)`") => {
                "write `for x in list { … }`, without brackets"
            }
            (Keyword::Mut, _) => "write `let mut x = …`",
            (_, TokenKind::Punct(Punct::Colon)) if expected == "an expression" => {
                "this is a keyword; a name that is one is written as a text: `provider: \"mock\"`"
            }
            _ => return None,
        })
    }

    fn punct_habit(&self, punct: Punct, expected: &str) -> Option<&'static str> {
        let minus_twice = self.was(1, Punct::Minus) && self.was(2, Punct::Minus);
        Some(match punct {
            Punct::Plus if self.was(1, Punct::Plus) || self.is_ahead(1, Punct::Plus) => {
                "write `x += 1`"
            }
            _ if minus_twice => "write `x -= 1`",
            Punct::Eq if self.was(1, Punct::EqEq) => "write `==`, which compares values",
            Punct::Eq if self.was(1, Punct::NotEq) => "write `!=`, which compares values",
            Punct::Eq if self.was(1, Punct::Colon) => "write `let x = …`",
            Punct::Eq if expected.contains("type of the constant") => {
                "a constant has a type: `const NAME: Int = 1;`"
            }
            Punct::Colon if self.is_ahead(1, Punct::Eq) => {
                "write `let x = …`, and `x = …` to change what is `mut`"
            }
            Punct::Colon if self.was(1, Punct::ParenClose) => {
                "the type of a result is written `-> Type`"
            }
            Punct::FatArrow => "a closure is written `|x| x + 1`",
            Punct::Arrow if expected.starts_with("`=>`") => "an arm is written `pattern => value`",
            Punct::Not if self.before(1) == Some(TokenKind::Ident) => {
                "functions are called without `!`: `println(…)`"
            }
            Punct::Semicolon if expected == "an expression" && self.was(1, Punct::Semicolon) => {
                "there is a `;` too many"
            }
            Punct::Semicolon if expected == "a field" => "fields have commas between them",
            Punct::BracketOpen if expected == "a type" || self.is_ahead(1, Punct::BracketClose) => {
                "the type of an array is written `Array<Int>`"
            }
            Punct::Question if expected == "a field" || expected.starts_with("`;`") => {
                "what may be missing is an `Option<Int>`, or `name?: Int` in a struct or schema"
            }
            _ => return None,
        })
    }
}

//! The words of the language.

use std::fmt;

use crate::source::Span;

/// A word and its place.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// Which word.
    pub kind: TokenKind,
    /// Where.
    pub span: Span,
}

/// What a word is. The text of an identifier is the source's; that of a string is in
/// [`Lexed::texts`](super::Lexed::texts), decoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TokenKind {
    /// A name.
    Ident,
    /// A word that the language keeps for itself.
    Keyword(Keyword),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// A string without interpolation.
    Str(u32),
    /// The beginning of an interpolated string, up to the first `${`.
    TextStart(u32),
    /// What stands between `}` and the next `${`.
    TextMiddle(u32),
    /// What stands after the last `}`.
    TextEnd(u32),
    /// An operator or a bracket.
    Punct(Punct),
    /// The end of the file.
    End,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $text:literal)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each is the word that it is named for")]
        pub enum $name { $($variant),* }

        impl $name {
            /// All there are.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// As it is written.
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// The one that is written so.
            pub fn of(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.text())
            }
        }
    };
}

words! {
    /// A word that the language keeps for itself.
    Keyword {
        Let "let" Mut "mut" Const "const" Fn "fn" Model "model" Tool "tool" Pub "pub" Use "use" Mod "mod"
        If "if" Else "else" Match "match" For "for" While "while" Loop "loop" Break "break"
        Continue "continue" Return "return" Try "try" Catch "catch" Throw "throw" Emit "emit"
        Await "await" Async "async" Pipeline "pipeline" Stage "stage" Schema "schema"
        Hashmap "hashmap" Agent "agent" Listen "listen" Ledger "ledger" Memory "memory" Mock "mock"
        SelfWord "self" Impl "impl" Trait "trait" Enum "enum" Struct "struct" As "as" In "in"
        With "with" True "true" False "false" Nil "nil" Type "type" Mcp "mcp"
    }
}

words! {
    /// An operator or a bracket.
    Punct {
        Plus "+" Minus "-" Star "*" Slash "/" Percent "%" EqEq "==" NotEq "!=" Less "<" Greater ">"
        LessEq "<=" GreaterEq ">=" AndAnd "&&" OrOr "||" Not "!" Eq "=" PlusEq "+=" MinusEq "-="
        StarEq "*=" SlashEq "/=" PercentEq "%=" Arrow "->" FatArrow "=>" PathSep "::" Dot "."
        DotDot ".." DotDotEq "..=" Pipe "|" PipeTo "|>" Question "?" Coalesce "??" At "@"
        ParenOpen "(" ParenClose ")" BraceOpen "{" BraceClose "}" BracketOpen "[" BracketClose "]"
        Comma "," Semicolon ";" Colon ":"
    }
}

/// A comment, which means nothing and is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comment {
    /// With its slashes and stars; the end of the line is not part of it.
    pub span: Span,
    /// Whether nothing but white space stands before it on its line.
    pub own_line: bool,
    /// Whether it goes to the end of the line.
    pub to_line_end: bool,
}

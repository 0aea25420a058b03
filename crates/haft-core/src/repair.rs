//! The words of an audited repair: which edits there are, and how far each may be trusted.

use serde::{Deserialize, Serialize};

/// How much an edit takes upon itself.
///
/// The argument policy accepts [`Lossless`](Self::Lossless) and [`Coercion`](Self::Coercion) and
/// nothing else: a repair may restore what the model evidently wrote, it must never decide what
/// the model meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RepairClass {
    /// Punctuation restored; no character of the payload was dropped or added.
    Lossless,
    /// A value brought to the one type that the schema admits.
    Coercion,
    /// One of several possible readings was taken.
    Guessed,
    /// A value that was cut off was closed where it ended.
    Shortened,
    /// A value that the model never wrote was put in.
    Invented,
    /// Content that the model left out with an ellipsis was taken as absent.
    Elided,
}

impl RepairClass {
    /// Whether arguments changed this way may still be handed to a tool.
    ///
    /// ```
    /// use haft_core::RepairClass;
    /// assert!(RepairClass::Lossless.admissible_in_arguments());
    /// assert!(!RepairClass::Shortened.admissible_in_arguments());
    /// ```
    pub fn admissible_in_arguments(self) -> bool {
        matches!(self, Self::Lossless | Self::Coercion)
    }
}

macro_rules! repair_kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident: $class:ident,)+) => {
        /// What a single edit did.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum RepairKind {
            $($(#[doc = $doc])+ $kind,)+
        }

        impl RepairKind {
            /// How far this edit may be trusted.
            ///
            /// ```
            /// use haft_core::{RepairClass, RepairKind};
            /// assert_eq!(RepairKind::TrailingComma.class(), RepairClass::Lossless);
            /// ```
            pub fn class(self) -> RepairClass {
                match self {
                    $(Self::$kind => RepairClass::$class,)+
                }
            }
        }
    };
}

repair_kinds! {
    /// A byte-order mark was dropped.
    ByteOrderMark: Lossless,
    /// A blank that JSON does not know (U+00A0, U+3000, …) became a plain one.
    SpecialBlank: Lossless,
    /// A comma without a member behind or before it was dropped.
    SurplusComma: Lossless,
    /// A comma before a closing bracket was dropped.
    TrailingComma: Lossless,
    /// A comma between two members was put in.
    MissingComma: Lossless,
    /// A colon between key and value was put in.
    MissingColon: Lossless,
    /// Single quotes or back-ticks around a string became double quotes.
    SingleQuotes: Lossless,
    /// Curly quotes around a string became double quotes.
    SmartQuotes: Lossless,
    /// Quotes were put around a bare key.
    UnquotedKey: Lossless,
    /// A quote inside a string was escaped.
    InnerQuote: Lossless,
    /// A control character inside a string was escaped.
    RawControl: Lossless,
    /// A backslash that starts no escape sequence was escaped.
    LoneBackslash: Lossless,
    /// An escape that JSON does not know but needs no backslash (`\'`) lost its backslash.
    ForeignEscape: Lossless,
    /// `True`, `False` or `None` became the JSON literal.
    PythonLiteral: Lossless,
    /// A number without a digit before its point got a zero there.
    LeadingDot: Lossless,
    /// A comment outside strings was dropped.
    Comment: Lossless,
    /// The fence around a code block was dropped.
    CodeFence: Lossless,
    /// Prose or markup around the one JSON value was dropped.
    Prose: Lossless,
    /// A label such as `arguments =` was dropped.
    Label: Lossless,
    /// A call wrapper such as `callback(…);` was dropped.
    CallWrapper: Lossless,
    /// One level of escaping was taken off.
    Unescaped: Lossless,
    /// String literals joined with `+` became one.
    Concatenation: Lossless,
    /// Closing brackets were appended after a complete value.
    MissingClose: Lossless,
    /// The text ended directly after a number, and the provider says that it ended normally.
    NumberAtEnd: Lossless,
    /// Closing brackets after the complete root were dropped.
    SurplusClose: Lossless,
    /// A closing bracket of the wrong shape was replaced where nesting decides.
    MismatchedClose: Lossless,
    /// Braces were put around the only member written directly into an array.
    MissingBraces: Lossless,

    /// A string that holds JSON was decoded to the wanted object or array.
    DecodedJson: Coercion,
    /// A string that is exactly one literal became that number or boolean.
    ParsedLiteral: Coercion,
    /// A value was wrapped into the wanted array.
    WrappedScalar: Coercion,
    /// A member of an enum was found ignoring case.
    EnumCase: Coercion,
    /// Blanks around a member of an enum were dropped.
    EnumBlanks: Coercion,
    /// `null` for an optional property that is not nullable was dropped.
    DroppedNull: Coercion,
    /// A wrapper around the arguments was taken off.
    Unwrapped: Coercion,

    /// Quotes were put around bare text.
    UnquotedText: Guessed,
    /// A missing quote was put where one of several readings wants it.
    MissingQuote: Guessed,
    /// A backslash was escaped in a string whose other escapes could be raw backslashes as well.
    GuessedBackslash: Guessed,
    /// Quotes inside a string were escaped although they do not pair up.
    GuessedQuote: Guessed,
    /// Several root values became one array.
    ManyRoots: Guessed,
    /// Text that is no JSON was dropped or read as something else.
    Reinterpreted: Guessed,
    /// A string that was cut off was closed.
    CutString: Shortened,
    /// A number or literal that was cut off was completed or dropped.
    CutLiteral: Shortened,
    /// A value was put in where none was written.
    InventedValue: Invented,
    /// An ellipsis that stands for left-out members was dropped.
    Ellipsis: Elided,
}

/// One edit of a repair, as it is recorded.
///
/// Edits of the text carry the byte `offset` in the text that was repaired; applying them in order
/// (each replaces `before` at `offset` with `after`, offsets counted in the original) gives the
/// repaired text. Coercions carry no offset; their `before` and `after` are compact JSON at `path`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairEvent {
    /// What was done.
    pub kind: RepairKind,
    /// JSON pointer of the value concerned, in the repaired document.
    pub path: String,
    /// Byte offset in the text before the repair; absent for coercions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<usize>,
    /// What stood there.
    pub before: String,
    /// What stands there now.
    pub after: String,
}

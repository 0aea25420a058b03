//! Why a text was refused.

use haft_core::{RepairClass, RepairKind};

/// Why a text was refused. Offsets are bytes of the input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextRefusal {
    /// The text ends before its value does.
    #[error("the text is cut off at byte {offset}: send the whole value again")]
    Truncated {
        /// Where it ends.
        offset: usize,
    },
    /// The only repair at hand would decide what was meant.
    #[error("at byte {offset}: {}", reason(*kind))]
    Inadmissible {
        /// The edit that would have been needed.
        kind: RepairKind,
        /// Where.
        offset: usize,
    },
    /// There is no JSON in the text.
    #[error("there is no JSON object in the text")]
    NoJson,
    /// There are several values where one is wanted.
    #[error("a second value starts at byte {offset}: send exactly one")]
    ManyValues {
        /// Where the second value starts.
        offset: usize,
    },
    /// The text goes on with something that no repair can place.
    #[error("at byte {offset}: expected {expected}")]
    Unreadable {
        /// Where reading stopped.
        offset: usize,
        /// What would have been readable there.
        expected: &'static str,
    },
    /// Too many brackets are open at once.
    #[error("at byte {offset}: nested deeper than {limit} levels")]
    TooDeep {
        /// Where the limit was passed.
        offset: usize,
        /// The limit.
        limit: usize,
    },
    /// The text is too long.
    #[error("the text has {length} bytes, the limit is {limit}")]
    TooLarge {
        /// Its length in bytes.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// So much is wrong that a repair would be a rewrite.
    #[error("the text needs more than {limit} repairs")]
    TooManyEdits {
        /// The limit.
        limit: usize,
    },
}

impl TextRefusal {
    /// The same refusal with its offset translated.
    pub(super) fn moved(mut self, origin: impl Fn(usize) -> usize) -> Self {
        match &mut self {
            Self::Truncated { offset }
            | Self::Inadmissible { offset, .. }
            | Self::ManyValues { offset }
            | Self::Unreadable { offset, .. }
            | Self::TooDeep { offset, .. } => *offset = origin(*offset),
            Self::NoJson | Self::TooLarge { .. } | Self::TooManyEdits { .. } => {}
        }
        self
    }
}

fn reason(kind: RepairKind) -> &'static str {
    match kind {
        RepairKind::UnquotedText => "text without quotes",
        RepairKind::MissingQuote | RepairKind::GuessedQuote => {
            "a quote is missing or not escaped, and more than one reading is possible"
        }
        RepairKind::GuessedBackslash => {
            "a backslash is not escaped, and more than one reading is possible"
        }
        RepairKind::CutLiteral => "the number is not complete",
        RepairKind::InventedValue => "there is no JSON value",
        RepairKind::Ellipsis => "an ellipsis stands for content that was left out",
        _ => match kind.class() {
            RepairClass::Shortened => "the value is cut off",
            RepairClass::Invented => "the value is missing",
            RepairClass::Elided => "content was left out",
            _ => "more than one reading is possible",
        },
    }
}

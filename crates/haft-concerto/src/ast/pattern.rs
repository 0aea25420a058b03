//! Patterns of `match`, `let` and `for`.

use super::{Expr, Name, Path};
use crate::source::Span;

/// A pattern and its place.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Which.
    pub kind: PatternKind,
    /// Where.
    pub span: Span,
}

/// The forms of a pattern.
#[derive(Clone, Debug)]
pub enum PatternKind {
    /// `_`.
    Wildcard,
    /// `x`, which takes everything and names it.
    Binding(Name),
    /// `x @ inner`.
    At(Name, Box<Pattern>),
    /// `1`, `-2.5`, `"a"`, `true`, `nil`.
    Literal(Box<Expr>),
    /// `1..5`, `1..=5`.
    Range {
        /// The first.
        start: Box<Expr>,
        /// The last, or the one after it.
        end: Box<Expr>,
        /// Whether `end` belongs to it.
        inclusive: bool,
    },
    /// `None`, `Shape::Dot`.
    Path(Path),
    /// `Some(x)`, `Shape::Circle(r)`.
    Call(Path, Vec<Pattern>),
    /// `Point { x, y: 0, .. }`.
    Struct {
        /// Of which type or variant.
        path: Path,
        /// The fields; one without a pattern binds its name.
        fields: Vec<(Name, Option<Pattern>)>,
        /// Whether further fields are allowed by `..`.
        rest: bool,
    },
    /// `(a, b)`.
    Tuple(Vec<Pattern>),
    /// `[a, b, ..rest]`.
    Array(Vec<Pattern>, Option<RestPattern>),
    /// `1 | 2`.
    Or(Vec<Pattern>),
}

/// `..` or `..rest` at the end of an array pattern.
#[derive(Clone, Debug)]
pub struct RestPattern {
    /// What the rest is called.
    pub name: Option<Name>,
}

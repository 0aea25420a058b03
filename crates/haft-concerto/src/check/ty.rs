//! What the checker knows of a value (concerto.md §3). What it does not know fits everything.

use std::fmt;

/// A type as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ty {
    /// Not known, or `Any`.
    Unknown,
    Int,
    Float,
    Text,
    Bool,
    Nil,
    Range,
    Map,
    Function,
    Model,
    Agent,
    Tool,
    Array(Box<Ty>),
    Option(Box<Ty>),
    Result(Box<Ty>, Box<Ty>),
    /// A struct, schema or enum, by its full path.
    Named(String),
}

impl Ty {
    pub(super) fn array(inner: Self) -> Self {
        Self::Array(Box::new(inner))
    }

    pub(super) fn option(inner: Self) -> Self {
        Self::Option(Box::new(inner))
    }

    pub(super) fn result(ok: Self, err: Self) -> Self {
        Self::Result(Box::new(ok), Box::new(err))
    }

    pub(super) fn is_known(&self) -> bool {
        *self != Self::Unknown
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Float)
    }

    /// Whether a value of this type may stand where that one is declared.
    pub(super) fn fits(&self, declared: &Self) -> bool {
        match (self, declared) {
            (Self::Unknown, _)
            | (_, Self::Unknown)
            | (Self::Int, Self::Float)
            | (Self::Nil, Self::Option(_)) => true,
            (Self::Array(a), Self::Array(b)) | (Self::Option(a), Self::Option(b)) => a.fits(b),
            (Self::Result(a, e), Self::Result(b, f)) => a.fits(b) && e.fits(f),
            (value, Self::Result(ok, _)) => value.fits(ok),
            (a, b) => a == b,
        }
    }

    /// Whether a value of this type may be given for a parameter or a field of that one. Nil often stands for
    /// what is not there, a map for a struct that was read from JSON, and a range is run over like an array:
    /// these are left to the program.
    pub(super) fn suits(&self, declared: &Self) -> bool {
        match (self, declared) {
            (Self::Nil, _) | (Self::Map, Self::Named(_)) | (Self::Range, Self::Array(_)) => true,
            (Self::Array(a), Self::Array(b)) | (Self::Option(a), Self::Option(b)) => a.suits(b),
            (Self::Result(a, e), Self::Result(b, f)) => a.suits(b) && e.suits(f),
            (value, Self::Result(ok, _)) => value.suits(ok),
            _ => self.fits(declared),
        }
    }

    /// How a value of this type becomes one of that, if there is a way that is often meant.
    pub(super) fn remedy(&self, declared: &Self) -> Option<&'static str> {
        Some(match (self, declared) {
            (it, Self::Option(inner)) if it.suits(inner) => "write `Some(…)`",
            (Self::Option(inner), it) if inner.suits(it) => {
                "say what holds for `None`: `x ?? …`, `x.unwrap_or(…)`, or `match`"
            }
            (Self::Result(inner, _), it) if inner.suits(it) => {
                "open it: `x?`, `x.unwrap_or(…)`, or `match`"
            }
            (Self::Float, Self::Int) => "convert it: `x as Int`, which drops the fraction",
            (Self::Int | Self::Float | Self::Bool, Self::Text) => {
                "convert it: `x as String`, or put it into a text: `\"${x}\"`"
            }
            (Self::Text, Self::Int) => "convert it: `x as Int`",
            (Self::Text, Self::Float) => "convert it: `x as Float`",
            (Self::Int, Self::Bool) => "compare it: `x != 0`",
            (Self::Function, _) => "call it: `f(…)`",
            _ => return None,
        })
    }

    /// What both are, if one fits the other.
    pub(super) fn common(self, other: &Self) -> Self {
        if self == *other { self } else { Self::Unknown }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Unknown => "Any",
            Self::Int => "Int",
            Self::Float => "Float",
            Self::Text => "String",
            Self::Bool => "Bool",
            Self::Nil => "Nil",
            Self::Range => "Range",
            Self::Map => "Map",
            Self::Function => "Function",
            Self::Model => "ModelRef",
            Self::Agent => "AgentRef",
            Self::Tool => "ToolRef",
            Self::Named(name) => name,
            Self::Array(inner) => return write!(f, "Array<{inner}>"),
            Self::Option(inner) => return write!(f, "Option<{inner}>"),
            Self::Result(ok, err) => return write!(f, "Result<{ok}, {err}>"),
        };
        f.write_str(name)
    }
}

//! How an instruction fails (§6): a raised value, a fault, or an end that nothing catches.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use crate::value::{Struct, StructDef, Value};

/// What an instruction or a built-in gives.
pub type Outcome<T> = Result<T, Box<Failure>>;

/// How an instruction fails.
#[derive(Debug, Clone)]
pub enum Failure {
    /// A value was raised; it goes to `try`, becomes `Err`, or ends the program.
    Raised(Value),
    /// The program did something that has no result; it goes to `try` or ends the program.
    Fault(Fault),
    /// The program ends, whatever it catches.
    Stop(Stop),
}

/// What the program did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Of which kind.
    pub kind: FaultKind,
    /// What exactly, without the kind.
    pub text: String,
}

/// Kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// `/` or `%` by zero.
    DivisionByZero,
    /// An index that is not there.
    Index,
    /// A field that is not there.
    Field,
    /// A value of a type that has no such operation.
    Type,
    /// A name that nothing has.
    Name,
    /// Something that the host does not allow.
    Permission,
}

impl FaultKind {
    /// `kind` of a caught `RuntimeError`.
    pub fn word(self) -> &'static str {
        match self {
            Self::DivisionByZero => "division_by_zero",
            Self::Index => "index_error",
            Self::Field => "field_error",
            Self::Type => "type_error",
            Self::Name => "name_error",
            Self::Permission => "permission_denied",
        }
    }

    fn from_word(word: &str) -> Self {
        match word {
            "division_by_zero" => Self::DivisionByZero,
            "index_error" => Self::Index,
            "field_error" => Self::Field,
            "name_error" => Self::Name,
            "permission_denied" => Self::Permission,
            _ => Self::Type,
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::DivisionByZero => "",
            Self::Index => "index error: ",
            Self::Field => "field error: ",
            Self::Type => "type error: ",
            Self::Name => "name error: ",
            Self::Permission => "permission denied: ",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind.prefix(), self.text)
    }
}

static RUNTIME_ERROR: LazyLock<Arc<StructDef>> = LazyLock::new(|| {
    Arc::new(StructDef::new(
        "RuntimeError",
        vec![Arc::from("kind"), Arc::from("message")],
    ))
});

impl Fault {
    /// `division by zero`.
    pub fn division() -> Box<Failure> {
        Self::of(FaultKind::DivisionByZero, "division by zero")
    }

    /// A fault of a kind.
    pub fn of(kind: FaultKind, text: impl Into<String>) -> Box<Failure> {
        Box::new(Failure::Fault(Self {
            kind,
            text: text.into(),
        }))
    }

    /// `type error: …`.
    pub fn type_error(text: impl Into<String>) -> Box<Failure> {
        Self::of(FaultKind::Type, text)
    }

    /// `index error: index I out of bounds (length N)`.
    pub fn index(index: i64, length: usize) -> Box<Failure> {
        Self::of(
            FaultKind::Index,
            format!("index {index} out of bounds (length {length})"),
        )
    }

    /// The value that a program catches.
    pub fn to_value(&self) -> Value {
        Value::Struct(Arc::new(Struct::new(
            RUNTIME_ERROR.clone(),
            vec![Value::from(self.kind.word()), Value::text(self.to_string())],
        )))
    }

    /// The fault that a program caught as this value, if it is one.
    pub fn from_value(value: &Value) -> Option<Self> {
        let Value::Struct(object) = value else {
            return None;
        };
        if !Arc::ptr_eq(object.def(), &RUNTIME_ERROR) {
            return None;
        }
        let kind = FaultKind::from_word(object.get("kind")?.as_text()?);
        let text = object.get("message")?.as_text()?;
        Some(Self {
            kind,
            text: text.strip_prefix(kind.prefix()).unwrap_or(text).to_owned(),
        })
    }
}

/// Ends that nothing catches.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// `panic(msg)`.
    Panic(String),
    /// A failed `assert`.
    Assertion(String),
    /// `unwrap()` on `Err` or `None`.
    Unwrap(String),
    /// Too many calls within each other.
    Depth(usize),
    /// Too many steps.
    Steps(u64),
    /// Too much work of one instruction, in steps.
    Work(u64),
    /// Too much memory, in MiB.
    Memory(usize),
    /// Too much in stores that several calls share, in MiB.
    Stores(usize),
    /// Too much time, of a call that has a limit.
    Time(Duration),
    /// The host cancelled the run.
    Cancelled,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panic(text) => write!(f, "panic: {text}"),
            Self::Assertion(text) => write!(f, "unhandled error: assertion failed: {text}"),
            Self::Unwrap(text) => write!(f, "unhandled error: {text}"),
            Self::Depth(depth) => write!(f, "max call depth exceeded ({depth})"),
            Self::Steps(steps) => write!(f, "max steps exceeded ({steps})"),
            Self::Work(steps) => {
                write!(f, "max steps of one operation exceeded ({steps})")
            }
            Self::Memory(mebibytes) => write!(f, "max memory exceeded ({mebibytes} MiB)"),
            Self::Stores(mebibytes) => write!(
                f,
                "the stores of the program are full ({mebibytes} MiB); delete entries first"
            ),
            Self::Time(time) => write!(f, "max time exceeded ({}s)", time.as_secs_f64()),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl Failure {
    /// A raised text.
    pub fn raised(text: impl Into<String>) -> Box<Self> {
        Box::new(Self::Raised(Value::text(text.into())))
    }

    /// An end that nothing catches.
    pub fn stop(stop: Stop) -> Box<Self> {
        Box::new(Self::Stop(stop))
    }
}

/// As reported after `runtime error: `.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raised(value) => write!(f, "unhandled error: {value}"),
            Self::Fault(fault) => fault.fmt(f),
            Self::Stop(stop) => stop.fmt(f),
        }
    }
}

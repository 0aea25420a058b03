//! Why a program is not loaded.

use thiserror::Error;

/// Why a program is not loaded.
#[derive(Debug, Error)]
#[error("cannot load `{function}`{}: {kind}; compile the source again", place.map(|place| format!(", instruction {place}")).unwrap_or_default())]
pub struct LoadError {
    /// The function.
    pub function: String,
    /// The number of the instruction.
    pub place: Option<usize>,
    /// What is wrong with it.
    pub kind: LoadErrorKind,
}

/// What is wrong with an instruction or a function.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadErrorKind {
    /// An opcode that haft does not know.
    #[error("unknown opcode")]
    Opcode,
    /// A member that the opcode needs.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A member that is not what the opcode needs.
    #[error("`{0}` does not fit the opcode")]
    Member(&'static str),
    /// A jump out of the function.
    #[error("jump to {0}, which is behind the end of the function")]
    Jump(usize),
    /// A constant that is not there.
    #[error("constant {0} does not exist")]
    Constant(u64),
    /// Ways join with stacks of different heights.
    #[error("the stack has {one} values on one way and {other} on another")]
    Imbalance {
        /// On one way.
        one: usize,
        /// On the other.
        other: usize,
    },
    /// More is taken than there is.
    #[error("takes {takes} values from a stack of {height}")]
    Underflow {
        /// What it takes.
        takes: usize,
        /// What there is.
        height: usize,
    },
    /// The stack becomes too high.
    #[error("needs too high a stack")]
    TooHigh,
    /// More locals than registers.
    #[error("has too many locals")]
    TooManyLocals,
    /// A function that is named but not there.
    #[error("function `{0}` does not exist")]
    Function(String),
    /// A name that is declared twice.
    #[error("`{0}` is there twice")]
    Twice(String),
}

//! Why an expression has no value.

use super::{MAX_CHARS, MAX_DEPTH, MAX_DIGITS, MAX_EXPONENT};

/// Why an expression has no value, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at character {position}: {problem}")]
pub struct CalculationError {
    /// The character of the expression, from 1.
    pub position: usize,
    /// What is wrong there.
    pub problem: CalculationProblem,
}

/// What is wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CalculationProblem {
    /// A character that means nothing here.
    #[error("`{0}` means nothing here: use numbers, + - * / % ^ ( ) and functions")]
    UnknownCharacter(char),
    /// Digits that make no number.
    #[error("`{0}` is no number: write it like 1234.5 or 1.5e6")]
    InvalidNumber(String),
    /// A name that is neither function nor constant.
    #[error("there is no `{0}`: functions are {known}; constants are pi and e", known = super::function::KNOWN)]
    UnknownName(String),
    /// Something is missing.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What could stand here.
        expected: &'static str,
        /// What does.
        found: String,
    },
    /// A function with too few or too many arguments.
    #[error("`{function}` takes {takes}, not {given}")]
    WrongArguments {
        /// The function.
        function: &'static str,
        /// How many it takes.
        takes: &'static str,
        /// How many there are.
        given: usize,
    },
    /// The expression is too long.
    #[error("the expression has more than {MAX_CHARS} characters: shorten it")]
    TooLong,
    /// The expression is nested too deeply.
    #[error("the expression is nested more than {MAX_DEPTH} levels deep: flatten it")]
    TooDeep,
    /// Division by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// An exponent that is not whole.
    #[error("the exponent is not a whole number: only whole exponents and `sqrt` are possible")]
    FractionalExponent,
    /// An exponent that is too large.
    #[error("the exponent is beyond the limit of {MAX_EXPONENT}")]
    ExponentTooLarge,
    /// The root of a negative number.
    #[error("`sqrt` of a negative number")]
    NegativeRoot,
    /// How many decimals to round to is not a whole number within the limits.
    #[error("decimals must be a whole number from -{MAX_DIGITS} to {MAX_DIGITS}")]
    InvalidDecimals,
    /// A value too large to write.
    #[error("the value is beyond the limit of {MAX_DIGITS} digits")]
    TooLarge,
    /// A value too small to write.
    #[error("the value is nearer to zero than the limit of {MAX_DIGITS} decimals")]
    TooSmall,
    /// The expression takes too much work.
    #[error("the expression takes too much work with large numbers: round parts of it first")]
    TooMuchWork,
}

impl CalculationProblem {
    pub(super) fn at(self, position: usize) -> CalculationError {
        CalculationError {
            position,
            problem: self,
        }
    }
}

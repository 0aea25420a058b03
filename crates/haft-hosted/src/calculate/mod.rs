//! `calculate`: arithmetic without floating point.
//!
//! What comes in: an expression. What goes out: its value in decimal digits, and whether they are
//! all of it. On the way every value is a fraction of whole numbers, so `0.1 + 0.2` is `0.3` and
//! `1 / 3 * 3` is `1`; something is lost only where no fraction says it (a root, pi) or where it
//! would grow beyond every use, and the result then says so.
//!
//! An expression is first read as a whole ([`program`]), then evaluated without recursion
//! ([`evaluate`](mod@evaluate)). Length, depth, digits and work are bounded, and the bounds are
//! counted and not timed: the same expression always gives the same answer. It must never panic.

mod digits;
mod error;
mod evaluate;
mod function;
mod number;
mod power;
mod program;
mod token;

use haft_core::{ToolDefinition, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::tool::{HostedTool, hosted_tool};

pub use error::{CalculationError, CalculationProblem};

/// The longest expression, in characters.
pub(crate) const MAX_CHARS: usize = 10_000;

/// How deep signs, powers and parentheses may be nested.
pub(crate) const MAX_DEPTH: usize = 100;

/// The most digits before the point, and the most zeros behind it.
pub(crate) const MAX_DIGITS: u32 = 5_000;

/// The largest exponent.
pub(crate) const MAX_EXPONENT: u32 = 1_000_000_000;

/// To how many significant digits a value is written whose decimals do not end.
pub(crate) const SHOWN_DIGITS: u32 = 50;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The expression, for example `(19.99 * 3 + 4.50) * 1.2` or `round(2/3, 4)`.
    #[schemars(length(min = 1, max = 10_000))]
    expression: String,
}

/// What an expression comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Calculation {
    /// The value in decimal digits; very large and very small ones as `1.5e-40`.
    pub result: String,
    /// Whether these digits are the value, and not rounded to 50 significant ones.
    pub exact: bool,
}

/// The tool `calculate`: exact decimal arithmetic.
pub fn calculate() -> HostedTool {
    let definition = ToolDefinition::builder("calculate")
        .description(
            "Evaluate an arithmetic expression exactly, without floating point errors.\n\n\
             Operators: + - * / % (remainder, with the sign of the left side), ^ or ** (power with \
             a whole exponent), parentheses. Functions: abs(x), floor(x), ceil(x), round(x), \
             round(x, decimals), sqrt(x), min(…), max(…), sum(…), avg(…). Constants: pi, e. \
             Numbers are written 1234.5 or 1.5e6, without thousands separators.\n\n\
             Rounding is half away from zero. A result that has no end is rounded to 50 \
             significant digits and marked `exact: false`.",
        )
        .tags(["math", "arithmetic"])
        .read_only()
        .idempotent()
        .example(
            json!({"expression": "0.1 + 0.2"}),
            Some(json!({"result": "0.3", "exact": true})),
        );
    hosted_tool(definition, |arguments: Arguments, _| {
        evaluate(&arguments.expression).map_err(ToolError::from)
    })
}

/// Evaluates an expression.
///
/// ```
/// let calculation = haft_hosted::evaluate("0.1 + 0.2")?;
/// assert_eq!((calculation.result.as_str(), calculation.exact), ("0.3", true));
///
/// let third = haft_hosted::evaluate("1 / 3")?;
/// assert!(!third.exact && third.result.starts_with("0.3333"));
///
/// let error = haft_hosted::evaluate("2 * (3 + )").unwrap_err();
/// assert_eq!(error.to_string(), "at character 10: expected a number, found `)`");
/// # Ok::<(), haft_hosted::CalculationError>(())
/// ```
pub fn evaluate(expression: &str) -> Result<Calculation, CalculationError> {
    let program = program::Program::read(expression)?;
    let (result, exact) = evaluate::run(program)?.written();
    Ok(Calculation { result, exact })
}

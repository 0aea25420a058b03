//! From steps to a value.

use super::error::{CalculationError, CalculationProblem as Problem};
use super::number::Number;
use super::program::{Program, Step};

/// How much work an expression may take, in squares of machine words: what multiplying and finding
/// common divisors costs. Well below a second, even with the largest numbers.
const MAX_WORK: u64 = 10_000_000;

/// What a power or a function costs beside its operands.
const LONG_STEP: u64 = 2_000;

/// Does the steps one after the other. Neither their number nor their depth uses up the stack.
pub(super) fn run(program: Program) -> Result<Number, CalculationError> {
    let mut stack: Vec<Number> = Vec::new();
    let mut work = 0_u64;
    for (step, position) in program.steps {
        let taken = match step {
            Step::Push(_) => 0,
            Step::Negate => 1,
            Step::Call(_, given) => given,
            _ => 2,
        };
        let operands = stack.split_off(stack.len().saturating_sub(taken));
        work = work.saturating_add(cost(&step, &operands));
        if work > MAX_WORK {
            return Err(Problem::TooMuchWork.at(position));
        }
        let value = perform(step, &operands).map_err(|problem| problem.at(position))?;
        stack.push(value);
    }
    // A program that was read leaves exactly one value.
    stack.pop().ok_or(missing().at(1))
}

/// Fractions cost more than whole numbers, because of the search for common divisors; so does a
/// division, which makes a fraction of them.
fn cost(step: &Step, operands: &[Number]) -> u64 {
    let own = match step {
        Step::Power | Step::Call(..) => LONG_STEP,
        _ => 1,
    };
    let is_cheap = *step != Step::Divide && operands.iter().all(Number::is_whole);
    let words = operands.iter().map(Number::words);
    let squares: u64 = words.map(|words| words.saturating_mul(words)).sum();
    own + if is_cheap { squares / 64 } else { squares }
}

fn perform(step: Step, operands: &[Number]) -> Result<Number, Problem> {
    match (step, operands) {
        (Step::Push(number), _) => Ok(number),
        (Step::Call(function, _), arguments) => function.apply(arguments),
        (Step::Negate, [value]) => Ok(value.clone().negated()),
        (Step::Add, [left, right]) => left.plus(right),
        (Step::Subtract, [left, right]) => left.minus(right),
        (Step::Multiply, [left, right]) => left.times(right),
        (Step::Divide, [left, right]) => left.divided_by(right),
        (Step::Remainder, [left, right]) => left.remainder(right),
        (Step::Power, [left, right]) => left.raised_to(right),
        _ => Err(missing()),
    }
}

fn missing() -> Problem {
    Problem::Unexpected {
        expected: "a number",
        found: "nothing".to_owned(),
    }
}

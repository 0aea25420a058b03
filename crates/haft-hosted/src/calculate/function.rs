//! The functions and constants of expressions.

use num_rational::BigRational;
use num_traits::Zero;

use super::error::CalculationProblem as Problem;
use super::number::Number;

/// What there is, for those who wrote something else.
pub(super) const KNOWN: &str = "abs, floor, ceil, round, sqrt, min, max, sum and avg";

/// Pi to 110 decimals.
const PI: &str = "314159265358979323846264338327950288419716939937510\
                  58209749445923078164062862089986280348253421170679\
                  8214808651";

/// E to 110 decimals.
const E: &str = "271828182845904523536028747135266249775724709369995\
                 95749669676277240766303535475945713821785251664274\
                 2746639193";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Absolute,
    Floor,
    Ceiling,
    Round,
    Root,
    Minimum,
    Maximum,
    Sum,
    Average,
}

impl Function {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "abs" => Self::Absolute,
            "floor" => Self::Floor,
            "ceil" => Self::Ceiling,
            "round" => Self::Round,
            "sqrt" => Self::Root,
            "min" => Self::Minimum,
            "max" => Self::Maximum,
            "sum" => Self::Sum,
            "avg" => Self::Average,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Absolute => "abs",
            Self::Floor => "floor",
            Self::Ceiling => "ceil",
            Self::Round => "round",
            Self::Root => "sqrt",
            Self::Minimum => "min",
            Self::Maximum => "max",
            Self::Sum => "sum",
            Self::Average => "avg",
        }
    }

    /// Whether it takes so many arguments.
    pub(super) fn check(self, given: usize) -> Result<(), Problem> {
        let (fits, takes) = match self {
            Self::Absolute | Self::Floor | Self::Ceiling | Self::Root => {
                (given == 1, "one argument")
            }
            Self::Round => (given == 1 || given == 2, "one or two arguments"),
            _ => (given >= 1, "at least one argument"),
        };
        let function = self.name();
        fits.then_some(()).ok_or(Problem::WrongArguments {
            function,
            takes,
            given,
        })
    }

    /// Applies it to as many arguments as it takes. Sums and averages are additions and a division
    /// by then.
    pub(super) fn apply(self, arguments: &[Number]) -> Result<Number, Problem> {
        let zero = Number::exact(BigRational::zero())?;
        let first = arguments.first().unwrap_or(&zero);
        match self {
            Self::Absolute => Ok(first.clone().absolute()),
            Self::Floor => first.floor(),
            Self::Ceiling => first.ceiling(),
            Self::Round => first.round(arguments.get(1).unwrap_or(&zero)),
            Self::Root => first.root(),
            Self::Maximum => Ok(best(arguments, first, |next, best| best.is_less_than(next))),
            Self::Minimum => Ok(best(arguments, first, Number::is_less_than)),
            Self::Sum | Self::Average => Ok(first.clone()),
        }
    }
}

fn best(arguments: &[Number], first: &Number, wins: fn(&Number, &Number) -> bool) -> Number {
    let best = arguments.iter().fold(
        first,
        |best, next| {
            if wins(next, best) { next } else { best }
        },
    );
    best.clone()
}

pub(super) fn constant(name: &str) -> Option<Result<Number, Problem>> {
    match name {
        "pi" => Some(Number::constant(PI)),
        "e" => Some(Number::constant(E)),
        _ => None,
    }
}

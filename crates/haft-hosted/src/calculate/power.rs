//! Powers that are too long to be kept exactly.

use num_bigint::BigInt;
use num_rational::BigRational;

use super::MAX_DIGITS;
use super::digits::{decimal, magnitude, rounded_to_decimals, scaled_and_rounded};
use super::error::CalculationProblem as Problem;

/// With how many digits a power is worked out. Each of up to a thousand million factors may add an
/// error of one in the last: more than enough are left.
const DIGITS: i64 = 120;

/// Some digits and where the point is.
struct Floating {
    digits: BigInt,
    decimals: i64,
}

impl Floating {
    fn of(value: &BigRational) -> Self {
        let decimals = DIGITS - magnitude(value);
        Self {
            digits: scaled_and_rounded(value, decimals),
            decimals,
        }
    }

    fn times(&self, other: &Self) -> Result<Self, Problem> {
        let product = BigRational::from_integer(&self.digits * &other.digits);
        let excess = magnitude(&product) - DIGITS;
        let decimals = self.decimals + other.decimals - excess;
        // The first digit's place is `DIGITS - decimals`. One place more than the limit, because
        // the exact check comes at the end.
        let limit = i64::from(MAX_DIGITS) + 1;
        match DIGITS - decimals {
            place if place > limit => Err(Problem::TooLarge),
            place if place < -limit => Err(Problem::TooSmall),
            _ => Ok(Self {
                digits: scaled_and_rounded(&product, -excess),
                decimals,
            }),
        }
    }
}

/// The power of a value that is neither 0, 1 nor -1, rounded to `digits`; the exponent is not 0.
pub(super) fn rounded_power(
    value: &BigRational,
    exponent: u32,
    digits: i64,
) -> Result<BigRational, Problem> {
    let base = Floating::of(value);
    let mut power = Floating::of(value);
    // The highest bit is the value itself.
    for bit in (0..exponent.max(1).ilog2()).rev() {
        power = power.times(&power)?;
        if exponent >> bit & 1 == 1 {
            power = power.times(&base)?;
        }
    }
    let exact = decimal(power.digits, power.decimals);
    Ok(rounded_to_decimals(&exact, digits - 1 - magnitude(&exact)))
}

//! A value on its way through an expression.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::digits::{
    decimal, is_too_large, is_too_small, magnitude, rounded, rounded_to_decimals, scaled,
    too_many_bits, written,
};
use super::error::CalculationProblem as Problem;
use super::power::rounded_power;
use super::{MAX_DIGITS, MAX_EXPONENT};

/// With how many significant digits values go on that cannot be kept exactly. More than are shown,
/// so that what is lost on the way does not reach these.
const WORKING_DIGITS: u32 = 100;

/// To how many significant digits such a value is taken for whole.
const TRUSTED_DIGITS: u32 = 60;

/// How large a fraction may be, numerator and denominator together, before it is rounded.
const MAX_FRACTION_BITS: u64 = 45_000;

/// The same for one that is not exact anyway: the working digits, and some to spare.
const MAX_INEXACT_BITS: u64 = 1_000;

/// A fraction of whole numbers, and whether something was lost on the way to it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Number {
    value: BigRational,
    is_exact: bool,
}

impl Number {
    pub(super) fn exact(value: BigRational) -> Result<Self, Problem> {
        Self::checked(value, true)
    }

    /// Digits that go on for ever after these.
    pub(super) fn inexact(value: BigRational) -> Result<Self, Problem> {
        Self::checked(value, false)
    }

    /// Every value goes through here: it is within the limits, and rounded where it grew too large.
    fn checked(value: BigRational, is_exact: bool) -> Result<Self, Problem> {
        if is_too_large(&value) {
            return Err(Problem::TooLarge);
        }
        if is_too_small(&value) {
            return Err(Problem::TooSmall);
        }
        let size = value.numer().bits() + value.denom().bits();
        let most = if is_exact {
            MAX_FRACTION_BITS
        } else {
            MAX_INEXACT_BITS
        };
        if size > most {
            let value = rounded(&value, WORKING_DIGITS);
            return Ok(Self {
                value,
                is_exact: false,
            });
        }
        Ok(Self { value, is_exact })
    }

    /// How large it is, in machine words.
    pub(super) fn words(&self) -> u64 {
        (self.value.numer().bits() + self.value.denom().bits()) / 64 + 1
    }

    pub(super) fn is_whole(&self) -> bool {
        self.value.is_integer()
    }

    pub(super) fn written(&self) -> (String, bool) {
        written(&self.value, !self.is_exact)
    }

    pub(super) fn negated(self) -> Self {
        Self {
            value: -self.value,
            ..self
        }
    }

    pub(super) fn absolute(self) -> Self {
        Self {
            value: self.value.abs(),
            ..self
        }
    }

    pub(super) fn plus(&self, other: &Self) -> Result<Self, Problem> {
        self.with(other, |a, b| a + b, |a, b| a + b)
    }

    pub(super) fn minus(&self, other: &Self) -> Result<Self, Problem> {
        self.with(other, |a, b| a - b, |a, b| a - b)
    }

    pub(super) fn times(&self, other: &Self) -> Result<Self, Problem> {
        self.with(other, |a, b| a * b, |a, b| a * b)
    }

    /// Whole numbers stay whole: looking for a common divisor with one would be wasted.
    fn with(
        &self,
        other: &Self,
        whole: fn(&BigInt, &BigInt) -> BigInt,
        fraction: fn(&BigRational, &BigRational) -> BigRational,
    ) -> Result<Self, Problem> {
        let (a, b) = (&self.value, &other.value);
        let value = if a.is_integer() && b.is_integer() {
            BigRational::from_integer(whole(a.numer(), b.numer()))
        } else {
            fraction(a, b)
        };
        Self::checked(value, self.is_exact && other.is_exact)
    }

    pub(super) fn divided_by(&self, other: &Self) -> Result<Self, Problem> {
        if other.value.is_zero() {
            return Err(Problem::DivisionByZero);
        }
        let is_exact = self.is_exact && other.is_exact;
        let (a, b) = (&self.value, &other.value);
        if a.is_integer() && b.is_integer() && (a.numer() % b.numer()).is_zero() {
            let quotient = a.numer() / b.numer();
            return Self::checked(BigRational::from_integer(quotient), is_exact);
        }
        Self::checked(a / b, is_exact)
    }

    /// What is left of the division towards zero.
    pub(super) fn remainder(&self, other: &Self) -> Result<Self, Problem> {
        if other.value.is_zero() {
            return Err(Problem::DivisionByZero);
        }
        self.with(
            other,
            |a, b| a % b,
            |a, b| {
                // How often it goes in, without the search for a common divisor.
                let times = (a.numer() * b.denom()) / (a.denom() * b.numer());
                a - b * times
            },
        )
    }

    pub(super) fn raised_to(&self, exponent: &Self) -> Result<Self, Problem> {
        let is_exact = self.is_exact && exponent.is_exact;
        let exponent = exponent.trusted();
        if !exponent.is_integer() {
            return Err(Problem::FractionalExponent);
        }
        let exponent = exponent.numer();
        if exponent.is_zero() {
            return Self::checked(BigRational::one(), is_exact);
        }
        let base = match exponent.is_negative() {
            true if self.value.is_zero() => return Err(Problem::DivisionByZero),
            true => self.value.recip(),
            false => self.value.clone(),
        };
        // These stay what they are, whatever the exponent.
        if base.is_zero() || base.is_one() {
            return Self::checked(base, is_exact);
        }
        if base.abs().is_one() {
            let value = if exponent.bit(0) { base } else { -base };
            return Self::checked(value, is_exact);
        }
        let size = exponent.magnitude().to_u32();
        let size = size.filter(|size| *size <= MAX_EXPONENT);
        power(&base, size.ok_or(Problem::ExponentTooLarge)?, is_exact)
    }

    /// Exactly where the root is a fraction, else to the working digits.
    pub(super) fn root(&self) -> Result<Self, Problem> {
        if self.value.is_negative() {
            return Err(Problem::NegativeRoot);
        }
        if self.value.is_zero() {
            return Ok(self.clone());
        }
        let (numerator, denominator) = (self.value.numer().sqrt(), self.value.denom().sqrt());
        if &numerator * &numerator == *self.value.numer()
            && &denominator * &denominator == *self.value.denom()
        {
            // Roots of numbers without common divisor have none.
            let value = BigRational::new_raw(numerator, denominator);
            return Self::checked(value, self.is_exact);
        }
        let decimals = i64::from(WORKING_DIGITS) - magnitude(&self.value) / 2;
        let root = scaled(&self.value, 2 * decimals).sqrt();
        Self::inexact(decimal(root, decimals))
    }

    pub(super) fn floor(&self) -> Result<Self, Problem> {
        Self::checked(self.trusted().floor(), self.is_exact)
    }

    pub(super) fn ceiling(&self) -> Result<Self, Problem> {
        Self::checked(self.trusted().ceil(), self.is_exact)
    }

    pub(super) fn round(&self, decimals: &Self) -> Result<Self, Problem> {
        let limit = i64::from(MAX_DIGITS);
        let decimals = Some(&decimals.value)
            .filter(|value| value.is_integer())
            .and_then(|value| value.numer().to_i64())
            .filter(|decimals| (-limit..=limit).contains(decimals))
            .ok_or(Problem::InvalidDecimals)?;
        let value = rounded_to_decimals(&self.trusted(), decimals);
        Self::checked(value, self.is_exact)
    }

    /// The value without the digits that may be wrong: the square of the root of two is two.
    fn trusted(&self) -> BigRational {
        if self.is_exact {
            self.value.clone()
        } else {
            rounded(&self.value, TRUSTED_DIGITS)
        }
    }

    pub(super) fn is_less_than(&self, other: &Self) -> bool {
        self.value < other.value
    }

    /// The constant with these digits, the first of them before the point.
    pub(super) fn constant(digits: &'static str) -> Result<Self, Problem> {
        let decimals = i64::try_from(digits.len() - 1).unwrap_or(i64::MAX);
        let digits = digits.parse().unwrap_or_default();
        Self::inexact(decimal(digits, decimals))
    }
}

/// Exactly where there is room for it, else rounded. A value beyond the limits is refused before it
/// is made. Neither 0, 1 nor -1 comes here.
fn power(base: &BigRational, exponent: u32, is_exact: bool) -> Result<Number, Problem> {
    let times = u64::from(exponent);
    let bits = base.numer().bits().max(base.denom().bits());
    let is_whole = base.is_integer();
    if is_whole && (bits - 1).saturating_mul(times) >= too_many_bits() {
        return Err(Problem::TooLarge);
    }
    if is_whole || bits.saturating_mul(times) <= MAX_FRACTION_BITS / 2 {
        // Powers of numbers without common divisor have none.
        let (numerator, denominator) = (base.numer().pow(exponent), base.denom().pow(exponent));
        return Number::checked(BigRational::new_raw(numerator, denominator), is_exact);
    }
    let digits = i64::from(WORKING_DIGITS);
    Number::inexact(rounded_power(base, exponent, digits)?)
}

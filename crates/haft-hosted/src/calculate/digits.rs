//! Fractions of whole numbers as decimal digits.

use std::sync::LazyLock;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};

use super::{MAX_DIGITS, SHOWN_DIGITS};

/// From how many zeros on a number is written with an exponent.
const ZEROS: usize = 30;

/// The first value that is too large.
static TOO_LARGE: LazyLock<BigInt> = LazyLock::new(|| power_of_ten(u64::from(MAX_DIGITS)));

/// Ten to the power. Callers keep the exponent within a few times the limit of digits.
fn power_of_ten(exponent: u64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(exponent).unwrap_or(u32::MAX))
}

/// The digits with the point moved to the left by so many places, or to the right.
///
/// The only common divisors that there can be are twos and fives: looking for others, as for any
/// fraction, would be wasted.
pub(super) fn decimal(mut digits: BigInt, decimals: i64) -> BigRational {
    if decimals <= 0 {
        return BigRational::from_integer(digits * power_of_ten(decimals.unsigned_abs()));
    }
    if digits.is_zero() {
        return BigRational::zero();
    }
    let decimals = decimals.unsigned_abs();
    let twos = digits.trailing_zeros().unwrap_or(0).min(decimals);
    digits >>= twos;
    let (five, mut fives) = (BigInt::from(5), 0);
    while fives < decimals && (&digits % &five).is_zero() {
        digits /= &five;
        fives += 1;
    }
    let rest = u32::try_from(decimals - fives).unwrap_or(u32::MAX);
    BigRational::new_raw(digits, five.pow(rest) << (decimals - twos))
}

/// The value with the point moved to the right by so many places, without what is left behind it.
pub(super) fn scaled(value: &BigRational, decimals: i64) -> BigInt {
    let (numerator, denominator) = scaled_parts(value, decimals);
    numerator / denominator
}

/// The same, rounded half away from zero.
pub(super) fn scaled_and_rounded(value: &BigRational, decimals: i64) -> BigInt {
    let (numerator, denominator) = scaled_parts(value, decimals);
    let half = &denominator * numerator.signum();
    (numerator * 2 + half) / (denominator * 2)
}

fn scaled_parts(value: &BigRational, decimals: i64) -> (BigInt, BigInt) {
    let power = power_of_ten(decimals.unsigned_abs());
    let (numerator, denominator) = (value.numer(), value.denom());
    if decimals < 0 {
        (numerator.clone(), denominator * power)
    } else {
        (numerator * power, denominator.clone())
    }
}

/// Whether the value has more digits before the point than the limit.
pub(super) fn is_too_large(value: &BigRational) -> bool {
    // Most values are told by their size alone.
    value.numer().bits() + 8 > TOO_LARGE.bits() + value.denom().bits()
        && value.numer().abs() >= &*TOO_LARGE * value.denom()
}

/// Whether the value is no zero and has more zeros behind the point than the limit.
pub(super) fn is_too_small(value: &BigRational) -> bool {
    !value.is_zero()
        && value.denom().bits() + 8 > TOO_LARGE.bits() + value.numer().bits()
        && value.numer().abs() * &*TOO_LARGE < *value.denom()
}

/// From how many bits on a whole number is certainly too large.
pub(super) fn too_many_bits() -> u64 {
    TOO_LARGE.bits()
}

/// The exponent of the first digit that is no zero: 0 for 1 to 9.99, -1 for 0.1. Not for zero.
pub(super) fn magnitude(value: &BigRational) -> i64 {
    let bits = |number: &BigInt| i64::try_from(number.bits()).unwrap_or(i64::MAX);
    // 0.30103 is the logarithm of two; the estimate is off by two at most.
    let mut exponent = (bits(value.numer()) - bits(value.denom())) * 30_103 / 100_000;
    let one = BigInt::one();
    let reaches = |exponent: i64| scaled(value, -exponent).abs() >= one;
    while reaches(exponent + 1) {
        exponent += 1;
    }
    while !reaches(exponent) {
        exponent -= 1;
    }
    exponent
}

/// The value rounded to so many decimals, half away from zero; negative ones are before the point.
pub(super) fn rounded_to_decimals(value: &BigRational, decimals: i64) -> BigRational {
    decimal(scaled_and_rounded(value, decimals), decimals)
}

/// The value rounded to so many significant digits.
pub(super) fn rounded(value: &BigRational, digits: u32) -> BigRational {
    if value.is_zero() {
        return value.clone();
    }
    rounded_to_decimals(value, i64::from(digits) - 1 - magnitude(value))
}

/// The value in decimal digits, and whether these are all of it. `rounds` where it is to be rounded
/// even if its digits end, because the last ones are not known to be right.
pub(super) fn written(value: &BigRational, rounds: bool) -> (String, bool) {
    if !rounds && let Some(decimals) = decimals(value) {
        return (plain(value, decimals), true);
    }
    let shown = rounded(value, SHOWN_DIGITS);
    // What was rounded to a decimal has an end.
    let decimals = decimals(&shown).unwrap_or(MAX_DIGITS + SHOWN_DIGITS);
    (plain(&shown, decimals), false)
}

/// How many decimals the value has, if they end within the limit.
fn decimals(value: &BigRational) -> Option<u32> {
    let limit = u64::from(MAX_DIGITS + SHOWN_DIGITS);
    let twos = value.denom().trailing_zeros().unwrap_or(0);
    let mut rest = value.denom() >> twos;
    let (five, mut fives) = (BigInt::from(5), 0);
    while !rest.is_one() {
        if fives > limit || !(&rest % &five).is_zero() {
            return None;
        }
        rest /= &five;
        fives += 1;
    }
    let decimals = twos.max(fives);
    u32::try_from(decimals).ok().filter(|_| decimals <= limit)
}

/// A value with so many decimals.
fn plain(value: &BigRational, decimals: u32) -> String {
    let digits = scaled(value, i64::from(decimals));
    let sign = if digits.is_negative() { "-" } else { "" };
    let digits = digits.abs().to_string();
    let decimals = decimals as usize;
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return "0".to_owned();
    }
    let many_behind = digits.len() > decimals + significant.len() + ZEROS;
    let many_before = digits.len() + ZEROS < decimals;
    if many_behind || many_before {
        let (first, rest) = significant.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let exponent = if many_behind {
            format!("{}", digits.len() - decimals - 1)
        } else {
            format!("-{}", decimals - digits.len() + 1)
        };
        return format!("{sign}{first}{point}{rest}e{exponent}");
    }
    if digits.len() <= decimals {
        let zeros = "0".repeat(decimals - digits.len());
        return format!("{sign}0.{zeros}{significant}");
    }
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    }
}

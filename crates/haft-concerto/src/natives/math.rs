//! `std::math`.

use super::{Native, give, int_of, wrong};
use crate::value::Value;
use crate::vm::{Fault, Outcome, Reply};

pub(super) const ALL: &[Native] = &[
    Native::new("std::math::abs", (1, 1), |_, a| match &a[0] {
        Value::Int(value) => give(value.wrapping_abs()),
        other => give(Value::Float(number("abs", other)?.abs())),
    }),
    Native::new("std::math::min", (2, 2), |_, a| {
        either("min", a, i64::min, f64::min)
    }),
    Native::new("std::math::max", (2, 2), |_, a| {
        either("max", a, i64::max, f64::max)
    }),
    Native::new("std::math::clamp", (3, 3), |_, a| {
        if let [Value::Int(value), Value::Int(low), Value::Int(high)] = a {
            return give((*value).min(*high).max(*low));
        }
        let (value, low, high) = (
            number("clamp", &a[0])?,
            number("clamp", &a[1])?,
            number("clamp", &a[2])?,
        );
        give(Value::Float(value.min(high).max(low)))
    }),
    Native::new("std::math::round", (1, 1), |_, a| {
        whole("round", &a[0], f64::round)
    }),
    Native::new("std::math::floor", (1, 1), |_, a| {
        whole("floor", &a[0], f64::floor)
    }),
    Native::new("std::math::ceil", (1, 1), |_, a| {
        whole("ceil", &a[0], f64::ceil)
    }),
    Native::new("std::math::pow", (2, 2), |_, a| {
        if let [Value::Int(base), Value::Int(exponent)] = a
            && let Ok(exponent) = u64::try_from(*exponent)
        {
            return give(power(*base, exponent));
        }
        give(Value::Float(
            number("pow", &a[0])?.powf(number("pow", &a[1])?),
        ))
    }),
    Native::new("std::math::sqrt", (1, 1), |_, a| {
        give(Value::Float(number("sqrt", &a[0])?.sqrt()))
    }),
    Native::new("std::math::random", (0, 0), |_, _| {
        // 53 bits are what a double holds between 0 and 1.
        #[allow(clippy::cast_precision_loss)]
        let value = (random()? >> 11) as f64 / (1_u64 << 53) as f64;
        give(Value::Float(value))
    }),
    Native::new("std::math::random_int", (2, 2), |_, a| {
        let (low, high) = (int_of("random_int", &a[0])?, int_of("random_int", &a[1])?);
        if low >= high {
            return Err(Fault::type_error(format!(
                "random_int: {low} is not below {high}"
            )));
        }
        let width = high.wrapping_sub(low).cast_unsigned();
        // Values above the last whole multiple would make the low ones more frequent.
        let limit = u64::MAX - u64::MAX % width;
        loop {
            let value = random()?;
            if value < limit {
                return give(low.wrapping_add((value % width).cast_signed()));
            }
        }
    }),
];

/// A number as a double.
#[allow(clippy::cast_precision_loss)] // the nearest double
fn number(function: &str, value: &Value) -> Outcome<f64> {
    match value {
        Value::Int(value) => Ok(*value as f64),
        Value::Float(value) => Ok(*value),
        other => Err(wrong(&format!("std::math::{function}"), "a number", other)),
    }
}

fn either(
    function: &str,
    arguments: &[Value],
    ints: fn(i64, i64) -> i64,
    floats: fn(f64, f64) -> f64,
) -> Outcome<Reply> {
    if let [Value::Int(a), Value::Int(b)] = arguments {
        return give(ints(*a, *b));
    }
    give(Value::Float(floats(
        number(function, &arguments[0])?,
        number(function, &arguments[1])?,
    )))
}

#[allow(clippy::cast_possible_truncation)] // saturates
fn whole(function: &str, value: &Value, round: fn(f64) -> f64) -> Outcome<Reply> {
    match value {
        Value::Int(value) => give(*value),
        other => give(round(number(function, other)?) as i64),
    }
}

/// Wraps, by squaring.
fn power(base: i64, exponent: u64) -> i64 {
    let (mut result, mut base, mut exponent) = (1_i64, base, exponent);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    result
}

fn random() -> Outcome<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| {
        Fault::type_error(format!("no random numbers from the system: {error}"))
    })?;
    Ok(u64::from_le_bytes(bytes))
}

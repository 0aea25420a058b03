//! Operators (§4).

use std::cmp::Ordering;

use super::Value;
use crate::vm::{Fault, Meter, Outcome};

/// An operator with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
}

impl Binary {
    /// The operator of a compound assignment, by its opcode.
    pub(crate) fn from_opcode(name: &str) -> Option<Self> {
        Some(match name {
            "ADD" => Self::Add,
            "SUB" => Self::Sub,
            "MUL" => Self::Mul,
            "DIV" => Self::Div,
            "MOD" => Self::Mod,
            _ => return None,
        })
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Mod => "%",
        }
    }

    /// `a op b`. Takes the operands, so that text which nobody else sees is appended to in place.
    #[allow(clippy::cast_precision_loss)] // the nearest double
    pub(crate) fn apply(self, a: Value, b: Value, meter: &mut Meter) -> Outcome<Value> {
        match (a, b) {
            (Value::Int(a), Value::Int(b)) => self.ints(a, b).map(Value::Int),
            (Value::Float(a), Value::Float(b)) => Ok(self.floats(a, b)),
            (Value::Int(a), Value::Float(b)) => Ok(self.floats(a as f64, b)),
            (Value::Float(a), Value::Int(b)) => Ok(self.floats(a, b as f64)),
            (Value::Text(mut a), b) if self == Self::Add => {
                let more = meter.shown(&b)?;
                let copied = a.growth(more.len());
                meter.work(copied / 64)?;
                meter.charge(copied + more.len())?;
                a.push_str(&more);
                Ok(Value::Text(a))
            }
            (a, Value::Text(b)) if self == Self::Add => {
                let mut text = meter.shown(&a)?;
                text.push_str(&b);
                Ok(Value::Text(text))
            }
            (a, b) => Err(Fault::type_error(format!(
                "cannot apply `{}` to {} and {}",
                self.sign(),
                a.type_name(),
                b.type_name()
            ))),
        }
    }

    #[inline]
    pub(crate) fn ints(self, a: i64, b: i64) -> Outcome<i64> {
        Ok(match self {
            Self::Add => a.wrapping_add(b),
            Self::Sub => a.wrapping_sub(b),
            Self::Mul => a.wrapping_mul(b),
            Self::Div | Self::Mod if b == 0 => return Err(Fault::division()),
            Self::Div => a.wrapping_div(b),
            Self::Mod => a.wrapping_rem(b),
        })
    }

    #[inline]
    pub(crate) fn floats(self, a: f64, b: f64) -> Value {
        Value::Float(match self {
            Self::Add => a + b,
            Self::Sub => a - b,
            Self::Mul => a * b,
            Self::Div => a / b,
            Self::Mod => a % b,
        })
    }
}

/// The order of two numbers or two texts; `None` if one is NaN.
#[allow(clippy::cast_precision_loss)] // the nearest double
pub(crate) fn compare(a: &Value, b: &Value) -> Outcome<Option<Ordering>> {
    Ok(match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Int(a), Value::Float(b)) => compare_exactly(*a, *b),
        (Value::Float(a), Value::Int(b)) => compare_exactly(*b, *a).map(Ordering::reverse),
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        (a, b) => {
            return Err(Fault::type_error(format!(
                "cannot compare {} and {}",
                a.type_name(),
                b.type_name()
            )));
        }
    })
}

/// The same, of a program's values: long texts take long.
pub(crate) fn compare_metered(
    a: &Value,
    b: &Value,
    meter: &mut Meter,
) -> Outcome<Option<Ordering>> {
    if let (Value::Text(a), Value::Text(b)) = (a, b) {
        meter.work(a.len().min(b.len()) / 64)?;
    }
    compare(a, b)
}

/// An Int beside a Float, without rounding either: large Ints have no Float of their own.
#[allow(clippy::cast_possible_truncation)] // what is out of range was answered
fn compare_exactly(int: i64, float: f64) -> Option<Ordering> {
    /// The first Float beyond all Ints.
    const END: f64 = 9_223_372_036_854_775_808.0;
    if float.is_nan() {
        return None;
    }
    if float >= END {
        return Some(Ordering::Less);
    }
    if float < -END {
        return Some(Ordering::Greater);
    }
    let whole = float.trunc();
    let rest = whole.partial_cmp(&float);
    Some(
        int.cmp(&(whole as i64))
            .then(rest.unwrap_or(Ordering::Equal)),
    )
}

impl Value {
    /// `-value`.
    pub(crate) fn negated(&self) -> Outcome<Value> {
        match self {
            Value::Int(value) => Ok(Value::Int(value.wrapping_neg())),
            Value::Float(value) => Ok(Value::Float(-value)),
            other => Err(Fault::type_error(format!(
                "cannot negate {}",
                other.type_name()
            ))),
        }
    }
}

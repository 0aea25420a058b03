//! Equality (§4): structural, Int equals Float numerically, the order of maps does not matter.

use std::convert::Infallible;
use std::sync::Arc;

use super::{Map, Value};
use crate::vm::{Failure, Meter, Outcome};

/// Who is told how much is compared, and may end it.
trait Pace {
    type Stop;

    fn step(&mut self, work: usize) -> Result<(), Self::Stop>;
}

impl Pace for Meter {
    type Stop = Box<Failure>;

    fn step(&mut self, work: usize) -> Outcome<()> {
        self.work(work)
    }
}

/// Nobody.
struct Free;

impl Pace for Free {
    type Stop = Infallible;

    fn step(&mut self, _: usize) -> Result<(), Infallible> {
        Ok(())
    }
}

/// For hosts and tests; programs are metered.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match compare(self, other, &mut Free) {
            Ok(equal) => equal,
            Err(never) => match never {},
        }
    }
}

/// Whether two values are equal.
#[inline]
pub(crate) fn equal(a: &Value, b: &Value, meter: &mut Meter) -> Outcome<bool> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Ok(a == b),
        (a, b) => compare(a, b, meter),
    }
}

fn compare<P: Pace>(a: &Value, b: &Value, pace: &mut P) -> Result<bool, P::Stop> {
    // What is still to be compared, so that deep values need no stack.
    let mut open = Vec::new();
    let mut pair = (a, b);
    loop {
        pace.step(1)?;
        if !same(pair.0, pair.1, &mut open, pace)? {
            return Ok(false);
        }
        pair = match next(&mut open, pace)? {
            Next::Pair(a, b) => (a, b),
            Next::Differs => return Ok(false),
            Next::End => return Ok(true),
        };
    }
}

/// What is still to be compared.
enum Open<'a> {
    /// Of the same length.
    Lists(&'a [Value], &'a [Value]),
    /// Of the same length, from a place of the first on.
    Maps(&'a Map, &'a Map, usize),
    Pair(&'a Value, &'a Value),
}

enum Next<'a> {
    Pair(&'a Value, &'a Value),
    Differs,
    End,
}

/// The next pair, of values that may hold others: what is flat is compared at once.
fn next<'a, P: Pace>(open: &mut Vec<Open<'a>>, pace: &mut P) -> Result<Next<'a>, P::Stop> {
    while let Some(last) = open.last_mut() {
        match last {
            Open::Lists([a, more_a @ ..], [b, more_b @ ..]) => {
                let (a, b): (&'a Value, &'a Value) = (a, b);
                *last = Open::Lists(more_a, more_b);
                if a.is_container() {
                    return Ok(Next::Pair(a, b));
                }
                pace.step(1)?;
                if !same(a, b, &mut Vec::new(), pace)? {
                    return Ok(Next::Differs);
                }
            }
            Open::Maps(a, b, at) if *at < a.len() => {
                let entry = a.at(*at);
                *at += 1;
                let Some((key, value)) = entry else {
                    continue;
                };
                pace.step(2 + key.len() / 16)?;
                let Some(other) = b.get(key) else {
                    return Ok(Next::Differs);
                };
                return Ok(Next::Pair(value, other));
            }
            Open::Pair(a, b) => {
                let pair = Next::Pair(a, b);
                open.pop();
                return Ok(pair);
            }
            Open::Lists(..) | Open::Maps(..) => {
                open.pop();
            }
        }
    }
    Ok(Next::End)
}

/// Whether two values are the same, but for what is put into `open`.
#[allow(clippy::float_cmp)] // equality of doubles is what is asked
fn same<'a, P: Pace>(
    a: &'a Value,
    b: &'a Value,
    open: &mut Vec<Open<'a>>,
    pace: &mut P,
) -> Result<bool, P::Stop> {
    Ok(match (a, b) {
        (Value::Nil, Value::Nil) | (Value::None, Value::None) | (Value::Absent, Value::Absent) => {
            true
        }
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Int(int), Value::Float(float)) | (Value::Float(float), Value::Int(int)) => {
            same_number(*int, *float)
        }
        (Value::Text(a), Value::Text(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            pace.step(a.len() / 64)?;
            a == b
        }
        (Value::Array(a), Value::Array(b)) => {
            Arc::ptr_eq(a, b) || lists(a.items(), b.items(), open)
        }
        (Value::Map(a), Value::Map(b)) => {
            open.push(Open::Maps(a, b, 0));
            a.len() == b.len()
        }
        (Value::Struct(a), Value::Struct(b)) if Arc::ptr_eq(a.def(), b.def()) => {
            lists(a.values(), b.values(), open)
        }
        (Value::Struct(a), Value::Struct(b)) => {
            let count = a.fields().count();
            if a.def().name != b.def().name || count != b.fields().count() {
                return Ok(false);
            }
            // Each name is looked for among all.
            pace.step(count.saturating_mul(count))?;
            a.fields().all(|(name, value)| {
                b.get(name).is_some_and(|other| {
                    open.push(Open::Pair(value, other));
                    true
                })
            })
        }
        (Value::Enum(a), Value::Enum(b)) => {
            (Arc::ptr_eq(a.def(), b.def()) || a.def() == b.def())
                && lists(a.values(), b.values(), open)
        }
        (Value::Ok(a), Value::Ok(b))
        | (Value::Err(a), Value::Err(b))
        | (Value::Some(a), Value::Some(b)) => {
            open.push(Open::Pair(a.get(), b.get()));
            true
        }
        (Value::Range(a), Value::Range(b)) => a == b,
        (Value::Function(a), Value::Function(b)) => {
            a.function == b.function && lists(&a.captures, &b.captures, open)
        }
        (Value::Native(a), Value::Native(b)) => std::ptr::eq(*a, *b),
        (Value::Ref(a), Value::Ref(b)) => a == b,
        (Value::Builder(a), Value::Builder(b)) => Arc::ptr_eq(a, b),
        _ => false,
    })
}

fn lists<'a>(a: &'a [Value], b: &'a [Value], open: &mut Vec<Open<'a>>) -> bool {
    open.push(Open::Lists(a, b));
    a.len() == b.len()
}

/// Exact, also where the Int has no double of its own.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::float_cmp
)]
fn same_number(int: i64, float: f64) -> bool {
    // A double that equals an i64 is within these bounds and whole, so that the way back is exact.
    float == int as f64 && float < 9.3e18 && float as i64 == int
}

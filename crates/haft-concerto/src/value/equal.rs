//! Equality (§4): structural, Int equals Float numerically, the order of maps does not matter.

use std::sync::Arc;

use super::Value;

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        // Pairs that are still to be compared, so that deep values need no stack.
        let mut open = Vec::new();
        let mut next = Some((self, other));
        while let Some((a, b)) = next {
            if !same(a, b, &mut open) {
                return false;
            }
            next = open.pop();
        }
        true
    }
}

#[allow(clippy::float_cmp)] // equality of doubles is what is asked
/// Whether two values are the same, but for the pairs that are put into `open`.
fn same<'a>(a: &'a Value, b: &'a Value, open: &mut Vec<(&'a Value, &'a Value)>) -> bool {
    match (a, b) {
        (Value::Nil, Value::Nil) | (Value::None, Value::None) | (Value::Absent, Value::Absent) => {
            true
        }
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Int(int), Value::Float(float)) | (Value::Float(float), Value::Int(int)) => {
            same_number(*int, *float)
        }
        (Value::Text(a), Value::Text(b)) => a == b,
        (Value::Array(a), Value::Array(b)) => {
            Arc::ptr_eq(a, b) || lists(a.items(), b.items(), open)
        }
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| {
                    b.get(key).is_some_and(|other| {
                        open.push((value, other));
                        true
                    })
                })
        }
        (Value::Struct(a), Value::Struct(b)) => {
            if Arc::ptr_eq(a.def(), b.def()) {
                return lists(a.values(), b.values(), open);
            }
            a.def().name == b.def().name
                && a.fields().count() == b.fields().count()
                && a.fields().all(|(name, value)| {
                    b.get(name).is_some_and(|other| {
                        open.push((value, other));
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
            open.push((a.get(), b.get()));
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
    }
}

fn lists<'a>(a: &'a [Value], b: &'a [Value], open: &mut Vec<(&'a Value, &'a Value)>) -> bool {
    if a.len() != b.len() {
        return false;
    }
    // What is flat is compared at once: the list of pairs grows only with what is nested.
    a.iter().zip(b).all(|(a, b)| {
        if a.is_container() {
            open.push((a, b));
            true
        } else {
            same(a, b, open)
        }
    })
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

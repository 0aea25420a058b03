//! Loops over values: each step costs the same, however long the value is.

use std::sync::Arc;

use super::{Fault, Outcome};
use crate::value::{Array, Map, Text, Value};

/// The state of a loop.
#[derive(Debug, Clone)]
pub enum Iter {
    /// Over numbers: the next, and how many are left.
    Range(i64, u64),
    /// Over an array, from a place on.
    Array(Arc<Array>, usize),
    /// Over a map, from a place on.
    Map(Arc<Map>, usize),
    /// Over the characters of a text, from a byte on.
    Text(Text, usize),
}

impl Iter {
    /// A loop over a value.
    pub(crate) fn over(value: Value) -> Outcome<Value> {
        let iter = match value {
            Value::Range(range) => {
                let (from, _) = range.bounds().unwrap_or_default();
                Iter::Range(from, range.count())
            }
            Value::Array(array) => Iter::Array(array, 0),
            Value::Map(map) => Iter::Map(map, 0),
            Value::Text(text) => Iter::Text(text, 0),
            other => {
                return Err(Fault::type_error(format!(
                    "cannot iterate over {}",
                    other.type_name()
                )));
            }
        };
        Ok(Value::Iter(Box::new(iter)))
    }

    /// The next item.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Value> {
        match self {
            Iter::Range(next, left) => {
                *left = left.checked_sub(1)?;
                let item = *next;
                // Only behind the last one.
                *next = item.wrapping_add(1);
                Some(Value::Int(item))
            }
            Iter::Array(array, place) => {
                let item = array.items().get(*place)?.clone();
                *place += 1;
                Some(item)
            }
            Iter::Map(map, place) => {
                let (key, value) = map.at(*place)?;
                *place += 1;
                Some(Value::array(vec![Value::Text(key.clone()), value.clone()]))
            }
            Iter::Text(text, place) => {
                let character = text.as_str().get(*place..)?.chars().next()?;
                *place += character.len_utf8();
                Some(Value::Text(Text::from(character)))
            }
        }
    }
}

//! Reading and changing parts of values.

use crate::interpret::Flow;
use crate::value::{Fields, Value};

/// A step into a value.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Field(String),
    Index(Value),
}

pub(crate) fn get(value: &Value, steps: &[Step]) -> Result<Value, Flow> {
    let Some((step, rest)) = steps.split_first() else {
        return Ok(value.clone());
    };
    let inner = match (value, step) {
        (Value::Array(list), Step::Index(Value::Int(index))) => {
            place(list.len(), *index).map(|place| list[place].clone())?
        }
        (Value::Array(list), Step::Index(Value::Range(from, to, inclusive))) => {
            slice(list, *from, *to, *inclusive)
        }
        (Value::Text(text), Step::Index(Value::Int(index))) => {
            let chars: Vec<char> = text.chars().collect();
            Value::Text(chars[place(chars.len(), *index)?].to_string())
        }
        (Value::Map(entries), Step::Index(Value::Text(name)) | Step::Field(name))
        | (
            Value::Struct(_, entries) | Value::Variant(_, _, Fields::Names(entries)),
            Step::Field(name),
        ) => {
            let found = entries.iter().find(|(key, _)| key == name);
            found.map_or(Value::Nil, |(_, value)| value.clone())
        }
        (value, step) => panic!("{step:?} of {value}"),
    };
    get(&inner, rest)
}

pub(crate) fn set(value: &mut Value, steps: &[Step], new: Value) -> Result<(), Flow> {
    let Some((step, rest)) = steps.split_first() else {
        *value = new;
        return Ok(());
    };
    match (value, step) {
        (Value::Array(list), Step::Index(Value::Int(index))) => {
            let place = place(list.len(), *index)?;
            set(&mut list[place], rest, new)
        }
        (
            Value::Map(entries) | Value::Struct(_, entries),
            Step::Index(Value::Text(name)) | Step::Field(name),
        ) => {
            let found = entries.iter().position(|(key, _)| key == name);
            let place = found.unwrap_or_else(|| {
                entries.push((name.clone(), Value::Nil));
                entries.len() - 1
            });
            set(&mut entries[place].1, rest, new)
        }
        (value, step) => panic!("{step:?} of {value}"),
    }
}

fn place(length: usize, index: i64) -> Result<usize, Flow> {
    usize::try_from(index)
        .ok()
        .filter(|place| *place < length)
        .ok_or_else(|| {
            let text = format!("index error: index {index} out of bounds (length {length})");
            Flow::Fault("index_error", text)
        })
}

fn slice(list: &[Value], from: Option<i64>, to: Option<i64>, inclusive: bool) -> Value {
    let clamp = |at: i64| usize::try_from(at).unwrap_or(0).min(list.len());
    let from = clamp(from.unwrap_or(0));
    let to = match to {
        Some(to) => clamp(if inclusive { to + 1 } else { to }),
        None => list.len(),
    };
    Value::Array(list.get(from..to).unwrap_or_default().to_vec())
}

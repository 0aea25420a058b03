//! Reading and changing parts of values (§4, §5).

use std::sync::Arc;

use super::{Range, Text, Value};
use crate::vm::{Fault, FaultKind, Outcome};

/// `value.name`. Fields of tools are the machine's, not the value's.
pub(crate) fn get_field(value: &Value, name: &Arc<str>) -> Outcome<Value> {
    match value {
        Value::Struct(object) => match object.def().place(name) {
            Some(place) => match &object.values()[place] {
                Value::Absent if object.def().optional[place] => Ok(Value::Nil),
                Value::Absent => Err(no_field(value, name)),
                field => Ok(field.clone()),
            },
            None => Err(no_field(value, name)),
        },
        Value::Map(map) => Ok(map.get(name).cloned().unwrap_or_default()),
        Value::Enum(object) => object
            .def()
            .fields
            .iter()
            .position(|field| field == name)
            .and_then(|place| object.values().get(place).cloned())
            .ok_or_else(|| no_field(value, name)),
        other => Err(no_field(other, name)),
    }
}

/// The fault of a field that is not there.
pub(crate) fn no_field(value: &Value, name: &str) -> Box<crate::vm::Failure> {
    Fault::of(
        FaultKind::Field,
        format!("no field '{name}' on {}", value.type_name()),
    )
}

/// The field, to change; one of a map is made.
pub(crate) fn set_field<'a>(value: &'a mut Value, name: &Arc<str>) -> Outcome<&'a mut Value> {
    let place = match &*value {
        Value::Struct(object) => object.def().place(name),
        Value::Enum(object) => object.def().fields.iter().position(|field| field == name),
        Value::Map(_) => Some(0),
        _ => None,
    };
    let Some(place) = place else {
        return Err(no_field(value, name));
    };
    match value {
        Value::Struct(object) => Ok(&mut Arc::make_mut(object).values_mut()[place]),
        Value::Enum(object) => Ok(&mut Arc::make_mut(object).values_mut()[place]),
        Value::Map(map) => Ok(Arc::make_mut(map).entry(Text::from(&**name))),
        other => Err(no_field(other, name)),
    }
}

/// `value[index]`.
pub(crate) fn get_index(value: &Value, index: &Value) -> Outcome<Value> {
    match (value, index) {
        (Value::Array(array), Value::Int(index)) => usize::try_from(*index)
            .ok()
            .and_then(|place| array.items().get(place))
            .cloned()
            .ok_or_else(|| Fault::index(*index, array.items().len())),
        (Value::Array(array), Value::Range(range)) => {
            let (from, to) = clamp(range, array.items().len())?;
            Ok(Value::array(array.items()[from..to].to_vec()))
        }
        (Value::Map(map), Value::Text(key)) => Ok(map.get(key).cloned().unwrap_or_default()),
        (Value::Text(text), Value::Int(index)) => {
            let character = usize::try_from(*index).ok().and_then(|place| {
                if text.is_ascii() {
                    text.as_bytes().get(place).map(|byte| char::from(*byte))
                } else {
                    text.chars().nth(place)
                }
            });
            character
                .map(|character| Value::Text(Text::from(character)))
                .ok_or_else(|| Fault::index(*index, text.chars().count()))
        }
        (Value::Text(text), Value::Range(range)) => {
            let (from, to) = clamp(range, text.chars().count())?;
            Ok(Value::text(
                text.chars().skip(from).take(to - from).collect::<String>(),
            ))
        }
        (Value::Ok(inner) | Value::Err(inner) | Value::Some(inner), Value::Int(0)) => {
            Ok(inner.get().clone())
        }
        (Value::Ok(_) | Value::Err(_) | Value::Some(_), Value::Int(index)) => {
            Err(Fault::index(*index, 1))
        }
        (Value::None, Value::Int(index)) => Err(Fault::index(*index, 0)),
        (Value::Enum(object), Value::Int(index)) => usize::try_from(*index)
            .ok()
            .and_then(|place| object.values().get(place))
            .cloned()
            .ok_or_else(|| Fault::index(*index, object.values().len())),
        (value, index) => Err(no_index(value, index)),
    }
}

fn no_index(value: &Value, index: &Value) -> Box<crate::vm::Failure> {
    Fault::type_error(format!(
        "cannot index {} with {}",
        value.type_name(),
        index.type_name()
    ))
}

/// The element, to change; a key of a map is made.
pub(crate) fn set_index(value: &mut Value, index: Value) -> Outcome<&mut Value> {
    match (value, index) {
        (Value::Array(array), Value::Int(index)) => {
            let length = array.items().len();
            match usize::try_from(index) {
                Ok(place) if place < length => Ok(&mut Arc::make_mut(array).items_mut()[place]),
                _ => Err(Fault::index(index, length)),
            }
        }
        (Value::Map(map), Value::Text(key)) => Ok(Arc::make_mut(map).entry(key)),
        (value, index) => Err(no_index(value, &index)),
    }
}

/// The elements from a place on.
pub(crate) fn slice_from(value: &Value, place: usize) -> Outcome<Value> {
    match value {
        Value::Array(array) => Ok(Value::array(
            array.items().get(place..).unwrap_or_default().to_vec(),
        )),
        other => Err(Fault::type_error(format!(
            "cannot take the rest of {}",
            other.type_name()
        ))),
    }
}

/// A range within a length: too large an end is cut, a beginning below zero is a fault.
fn clamp(range: &Range, length: usize) -> Outcome<(usize, usize)> {
    let (from, to) = range.bounds();
    let start = usize::try_from(from)
        .map_err(|_| Fault::index(from, length))?
        .min(length);
    let end = usize::try_from(to).unwrap_or(0).min(length);
    Ok((start, end.max(start)))
}

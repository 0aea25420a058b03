//! Reading and changing parts of values (§4, §5).

use std::sync::Arc;

use super::{Array, Map, Range, Text, Value};
use crate::vm::{Fault, FaultKind, Meter, Outcome};

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

/// The array, to change: copied first if somebody else sees it, which is charged.
#[inline]
pub(crate) fn own_array<'a>(
    array: &'a mut Arc<Array>,
    meter: &mut Meter,
) -> Outcome<&'a mut Array> {
    if Arc::strong_count(array) != 1 {
        meter.copy(array.items().len())?;
    }
    Ok(Arc::make_mut(array))
}

/// Room for more values in an array that is full.
#[cold]
pub(crate) fn grow(items: &mut Vec<Value>, meter: &mut Meter) -> Outcome<()> {
    let more = items.len().max(4);
    let more = if meter.fits(16 * more) {
        more
    } else {
        more.min(4096)
    };
    meter.ask(16 * more)?;
    meter.work(items.len() / 8)?;
    items.reserve_exact(more);
    Ok(())
}

/// The map, to change.
#[inline]
pub(crate) fn own_map<'a>(map: &'a mut Arc<Map>, meter: &mut Meter) -> Outcome<&'a mut Map> {
    if Arc::strong_count(map) != 1 {
        meter.ask(map.len().saturating_mul(48))?;
        meter.work(map.len())?;
    }
    Ok(Arc::make_mut(map))
}

/// The value of a key, to change; one that is not there is made.
fn own_entry<'a>(map: &'a mut Arc<Map>, key: Text, meter: &mut Meter) -> Outcome<&'a mut Value> {
    meter.read(key.len())?;
    meter.ask(map.growth())?;
    Ok(own_map(map, meter)?.entry(key))
}

/// The field, to change; one of a map is made.
pub(crate) fn set_field<'a>(
    value: &'a mut Value,
    name: &Arc<str>,
    meter: &mut Meter,
) -> Outcome<&'a mut Value> {
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
        Value::Map(map) => own_entry(map, Text::from(&**name), meter),
        other => Err(no_field(other, name)),
    }
}

/// `value[index]`.
pub(crate) fn get_index(value: &Value, index: &Value, meter: &mut Meter) -> Outcome<Value> {
    match (value, index) {
        (Value::Array(array), Value::Int(index)) => usize::try_from(*index)
            .ok()
            .and_then(|place| array.items().get(place))
            .cloned()
            .ok_or_else(|| Fault::index(*index, array.items().len())),
        (Value::Array(array), Value::Range(range)) => {
            let (from, to) = clamp(range, array.items().len())?;
            meter.copy(to - from)?;
            Ok(Value::array(array.items()[from..to].to_vec()))
        }
        (Value::Map(map), Value::Text(key)) => {
            // It is hashed.
            meter.read(key.len())?;
            Ok(map.get(key).cloned().unwrap_or_default())
        }
        (Value::Text(text), Value::Int(index)) => character(text, *index, meter),
        (Value::Text(text), Value::Range(range)) => {
            meter.read(2 * text.len())?;
            let (from, to) = clamp(range, text.chars().count())?;
            let mut ends = text.char_indices().map(|(place, _)| place);
            let start = ends.nth(from).unwrap_or(text.len());
            let end = match to - from {
                0 => start,
                count => ends.nth(count - 1).unwrap_or(text.len()),
            };
            meter.ask(end - start)?;
            Ok(Value::from(&text[start..end]))
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

/// The character at a place of a text, which is counted from its beginning.
fn character(text: &Text, index: i64, meter: &mut Meter) -> Outcome<Value> {
    // To see that all of it is ASCII is quick.
    meter.work(text.len() / 64)?;
    let place = usize::try_from(index).ok();
    let character = if text.is_ascii() {
        place
            .and_then(|place| text.as_bytes().get(place))
            .map(|byte| char::from(*byte))
    } else {
        meter.read(text.len())?;
        place.and_then(|place| text.chars().nth(place))
    };
    character
        .map(|character| Value::Text(Text::from(character)))
        .ok_or_else(|| Fault::index(index, text.chars().count()))
}

fn no_index(value: &Value, index: &Value) -> Box<crate::vm::Failure> {
    Fault::type_error(format!(
        "cannot index {} with {}",
        value.type_name(),
        index.type_name()
    ))
}

/// The element, to change; a key of a map is made.
pub(crate) fn set_index<'a>(
    value: &'a mut Value,
    index: &Value,
    meter: &mut Meter,
) -> Outcome<&'a mut Value> {
    match (value, index) {
        (Value::Array(array), Value::Int(index)) => {
            let length = array.items().len();
            match usize::try_from(*index) {
                Ok(place) if place < length => Ok(&mut own_array(array, meter)?.items_mut()[place]),
                _ => Err(Fault::index(*index, length)),
            }
        }
        (Value::Map(map), Value::Text(key)) => own_entry(map, key.clone(), meter),
        (value, index) => Err(no_index(value, index)),
    }
}

/// The elements from a place on.
pub(crate) fn slice_from(value: &Value, place: usize, meter: &mut Meter) -> Outcome<Value> {
    match value {
        Value::Array(array) => {
            let rest = array.items().get(place..).unwrap_or_default();
            meter.copy(rest.len())?;
            Ok(Value::array(rest.to_vec()))
        }
        other => Err(Fault::type_error(format!(
            "cannot take the rest of {}",
            other.type_name()
        ))),
    }
}

/// A range within a length: too large an end is cut, a beginning below zero is a fault.
fn clamp(range: &Range, length: usize) -> Outcome<(usize, usize)> {
    let from = range.from.unwrap_or(0);
    let start = usize::try_from(from)
        .map_err(|_| Fault::index(from, length))?
        .min(length);
    let last = range.bounds().map(|(_, last)| last);
    let end = last.and_then(|last| usize::try_from(last).ok());
    let end = end.map_or(0, |last| last.saturating_add(1)).min(length);
    Ok((start, end.max(start)))
}

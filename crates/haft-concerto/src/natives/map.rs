//! Methods of maps.

use super::Context;
use super::builtins::int;
use super::methods::argument;
use crate::load::Method;
use crate::value::{Items, Map, Text, Value, own_map};
use crate::vm::{Meter, Outcome, Reply};

pub(super) fn call(
    context: &mut Context<'_>,
    receiver: &mut Value,
    method: Method,
    arguments: &mut [Value],
) -> Outcome<Option<Reply>> {
    let Value::Map(map) = receiver else {
        return Ok(None);
    };
    let meter = context.meter();
    let value = match method {
        Method::Len => int(map.len()),
        Method::IsEmpty => Value::Bool(map.is_empty()),
        Method::Has | Method::Contains => {
            Value::Bool(map.contains(&key(argument(arguments, 0, "has")?, meter)?))
        }
        Method::Get => {
            let key = key(argument(arguments, 0, "get")?, meter)?;
            Value::option(map.get(&key).cloned())
        }
        Method::Keys => keys(map, meter)?,
        Method::Values => values(map, meter)?,
        Method::Entries => {
            let mut items = Items::with_room(meter, map.len())?;
            let pairs = map.iter();
            let pairs = pairs
                .map(|(key, value)| Value::array(vec![Value::Text(key.clone()), value.clone()]));
            items.extend(pairs, 72)?;
            items.array()?
        }
        Method::Set | Method::Insert => {
            let key = key(argument(arguments, 0, "set")?, meter)?;
            let value = argument(arguments, 1, "set")?.clone();
            meter.ask(map.growth())?;
            own_map(map, meter)?.insert(key, value);
            Value::Nil
        }
        Method::Remove => {
            let key = key(argument(arguments, 0, "remove")?, meter)?;
            // Those behind it move up.
            meter.work(map.len() / 4)?;
            Value::option(own_map(map, meter)?.remove(&key))
        }
        Method::Clear => {
            *map = std::sync::Arc::default();
            Value::Nil
        }
        _ => return Ok(None),
    };
    Ok(Some(value.into()))
}

/// All keys as an array.
pub(super) fn keys(map: &Map, meter: &mut Meter) -> Outcome<Value> {
    let mut items = Items::with_room(meter, map.len())?;
    items.extend(map.iter().map(|(key, _)| Value::Text(key.clone())), 0)?;
    items.array()
}

/// All values as an array.
pub(super) fn values(map: &Map, meter: &mut Meter) -> Outcome<Value> {
    let mut items = Items::with_room(meter, map.len())?;
    items.extend(map.iter().map(|(_, value)| value.clone()), 0)?;
    items.array()
}

/// A key by its display form, whole.
pub(super) fn key(value: &Value, meter: &mut Meter) -> Outcome<Text> {
    let key = meter.shown(value)?;
    // It is hashed.
    meter.read(key.len())?;
    Ok(key)
}

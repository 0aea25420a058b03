//! Methods of maps.

use std::sync::Arc;

use super::builtins::int;
use super::methods::argument;
use crate::load::Method;
use crate::value::{Text, Value};
use crate::vm::{Outcome, Reply};

pub(super) fn call(
    receiver: &mut Value,
    method: Method,
    arguments: &mut [Value],
) -> Outcome<Option<Reply>> {
    let Value::Map(map) = receiver else {
        return Ok(None);
    };
    let value = match method {
        Method::Len => int(map.len()),
        Method::IsEmpty => Value::Bool(map.is_empty()),
        Method::Has | Method::Contains => {
            Value::Bool(map.contains(&key(argument(arguments, 0, "has")?)))
        }
        Method::Get => Value::option(map.get(&key(argument(arguments, 0, "get")?)).cloned()),
        Method::Keys => Value::array(
            map.iter()
                .map(|(key, _)| Value::Text(key.clone()))
                .collect(),
        ),
        Method::Values => Value::array(map.iter().map(|(_, value)| value.clone()).collect()),
        Method::Entries => Value::array(
            map.iter()
                .map(|(key, value)| Value::array(vec![Value::Text(key.clone()), value.clone()]))
                .collect(),
        ),
        Method::Set | Method::Insert => {
            let key = key(argument(arguments, 0, "set")?);
            let value = argument(arguments, 1, "set")?.clone();
            Arc::make_mut(map).insert(key, value);
            Value::Nil
        }
        Method::Remove => {
            let key = key(argument(arguments, 0, "remove")?);
            Value::option(Arc::make_mut(map).remove(&key))
        }
        Method::Clear => {
            Arc::make_mut(map).clear();
            Value::Nil
        }
        _ => return Ok(None),
    };
    Ok(Some(value.into()))
}

/// A key by its display form.
pub(super) fn key(value: &Value) -> Text {
    match value {
        Value::Text(text) => text.clone(),
        other => Text::from(other.to_string()),
    }
}

//! Methods of `Option` and `Result`.

use super::methods::argument;
use crate::load::Method;
use crate::value::Value;
use crate::vm::{Continuation, Failure, Outcome, Reply, Stop};

fn apply(function: &Value, value: &Value, wrap: fn(Value) -> Value) -> Reply {
    Reply::Call {
        function: function.clone(),
        arguments: vec![value.clone()],
        then: Continuation::Wrap(wrap),
    }
}

fn same(value: Value) -> Value {
    value
}

pub(super) fn call_option(
    receiver: &Value,
    method: Method,
    arguments: &[Value],
) -> Outcome<Option<Reply>> {
    let inner = match receiver {
        Value::Some(inner) => Some(inner.get()),
        _ => None,
    };
    Ok(Some(match (method, inner) {
        (Method::IsSome, inner) => Value::Bool(inner.is_some()).into(),
        (Method::IsNone, inner) => Value::Bool(inner.is_none()).into(),
        (Method::Unwrap | Method::UnwrapOr, Some(inner)) => inner.clone().into(),
        (Method::Unwrap, None) => {
            return Err(Failure::stop(Stop::Unwrap(
                "called unwrap() on None".into(),
            )));
        }
        (Method::UnwrapOr, None) => argument(arguments, 0, "unwrap_or")?.clone().into(),
        (Method::Map, Some(inner)) => apply(argument(arguments, 0, "map")?, inner, Value::some),
        (Method::AndThen, Some(inner)) => apply(argument(arguments, 0, "and_then")?, inner, same),
        (Method::Map | Method::AndThen, None) => Value::None.into(),
        (Method::OkOr, Some(inner)) => Value::ok(inner.clone()).into(),
        (Method::OkOr, None) => Value::err(argument(arguments, 0, "ok_or")?.clone()).into(),
        _ => return Ok(None),
    }))
}

pub(super) fn call_result(
    receiver: &Value,
    method: Method,
    arguments: &[Value],
) -> Outcome<Option<Reply>> {
    let (good, inner) = match receiver {
        Value::Ok(inner) => (true, inner.get()),
        Value::Err(inner) => (false, inner.get()),
        _ => return Ok(None),
    };
    Ok(Some(match (method, good) {
        (Method::IsOk, good) => Value::Bool(good).into(),
        (Method::IsErr, good) => Value::Bool(!good).into(),
        (Method::Unwrap | Method::UnwrapOr | Method::UnwrapOrElse, true) => inner.clone().into(),
        (Method::Unwrap, false) => {
            let text = format!("called unwrap() on Err({inner})");
            return Err(Failure::stop(Stop::Unwrap(text)));
        }
        (Method::UnwrapOr, false) => argument(arguments, 0, "unwrap_or")?.clone().into(),
        (Method::UnwrapOrElse, false) => {
            apply(argument(arguments, 0, "unwrap_or_else")?, inner, same)
        }
        (Method::Map, true) => apply(argument(arguments, 0, "map")?, inner, Value::ok),
        (Method::MapErr, false) => apply(argument(arguments, 0, "map_err")?, inner, Value::err),
        (Method::AndThen, true) => apply(argument(arguments, 0, "and_then")?, inner, same),
        (Method::Map | Method::AndThen, false) | (Method::MapErr, true) => receiver.clone().into(),
        (Method::Ok, true) | (Method::Err, false) => Value::some(inner.clone()).into(),
        (Method::Ok, false) | (Method::Err, true) => Value::None.into(),
        _ => return Ok(None),
    }))
}

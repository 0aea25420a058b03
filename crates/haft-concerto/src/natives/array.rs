//! Methods of arrays.

use std::sync::Arc;

use super::builtins::int;
use super::methods::argument;
use super::{Context, array_of, int_of, string, text_of};
use crate::load::Method;
use crate::value::{Array, Items, Value, compare, equal, grow, own_array};
use crate::vm::{Each, Fault, Meter, Outcome, Reply};

pub(super) fn call(
    context: &mut Context<'_>,
    receiver: &mut Value,
    method: Method,
    arguments: &mut [Value],
) -> Outcome<Option<Reply>> {
    let Value::Array(array) = receiver else {
        return Ok(None);
    };
    let items = array.items();
    let meter = context.meter();
    let value = match method {
        Method::Len => int(items.len()),
        Method::IsEmpty => Value::Bool(items.is_empty()),
        Method::Get => {
            let place = int_of("get", argument(arguments, 0, "get")?)?;
            Value::option(
                usize::try_from(place)
                    .ok()
                    .and_then(|place| items.get(place))
                    .cloned(),
            )
        }
        Method::First => Value::option(items.first().cloned()),
        Method::Last => Value::option(items.last().cloned()),
        Method::Contains => {
            let wanted = argument(arguments, 0, "contains")?;
            Value::Bool(position(items, wanted, meter)?.is_some())
        }
        Method::IndexOf => {
            let wanted = argument(arguments, 0, "index_of")?;
            Value::option(position(items, wanted, meter)?.map(int))
        }
        Method::Join => {
            let separator = arguments
                .first()
                .map_or(Ok(""), |value| text_of("join", value))?;
            Value::text(string::join(meter, items, separator)?)
        }
        Method::Slice => {
            let length = items.len();
            let bound = |place: usize, otherwise: usize| -> Outcome<usize> {
                match arguments.get(place) {
                    None => Ok(otherwise),
                    Some(value) => Ok(super::count_of("slice", value)?.min(length)),
                }
            };
            let (from, to) = (bound(0, 0)?, bound(1, length)?);
            let part = &items[from..to.max(from)];
            meter.copy(part.len())?;
            Value::array(part.to_vec())
        }
        Method::Concat => {
            let other = array_of("concat", argument(arguments, 0, "concat")?)?;
            meter.copy(items.len() + other.len())?;
            Value::array(items.iter().chain(other).cloned().collect())
        }
        Method::Enumerate => {
            let mut pairs = Items::with_room(meter, items.len())?;
            let all = items.iter().enumerate();
            let all = all.map(|(place, item)| Value::array(vec![int(place), item.clone()]));
            pairs.extend(all, 72)?;
            pairs.array()?
        }
        Method::Map | Method::Filter | Method::Find | Method::Any | Method::All => {
            let function = argument(arguments, 0, "map")?.clone();
            meter.copy(items.len())?;
            return Ok(Some(Each::begin(
                method,
                function,
                items.to_vec(),
                Vec::new(),
            )));
        }
        Method::Reduce => {
            meter.copy(items.len())?;
            return reduce(items, arguments).map(Some);
        }
        _ => return change(context, receiver, method, arguments),
    };
    Ok(Some(value.into()))
}

/// `reduce(initial, f)` or `reduce(f, initial)`: the function is whichever is one.
fn reduce(items: &[Value], arguments: &[Value]) -> Outcome<Reply> {
    let (first, second) = (argument(arguments, 0, "reduce")?, arguments.get(1));
    let (initial, function) = match (first, second) {
        (function @ (Value::Function(_) | Value::Native(_)), initial) => (initial, function),
        (initial, Some(function)) => (Some(initial), function),
        (other, None) => return Err(super::wrong("reduce", "a function", other)),
    };
    let mut rest = items.iter().cloned();
    let start = match initial {
        Some(initial) => initial.clone(),
        None => rest.next().unwrap_or_default(),
    };
    let mut rest: Vec<Value> = rest.collect();
    if rest.is_empty() {
        return Ok(start.into());
    }
    let first = rest.remove(0);
    Ok(Reply::Call {
        function: function.clone(),
        arguments: vec![start, first],
        then: crate::vm::Continuation::Each(Each {
            method: Method::Reduce,
            function: function.clone(),
            items: rest.into_iter(),
            current: Value::Nil,
            results: Vec::new(),
            keys: Vec::new().into_iter(),
        }),
    })
}

/// Methods that change the array.
fn change(
    context: &mut Context<'_>,
    receiver: &mut Value,
    method: Method,
    arguments: &mut [Value],
) -> Outcome<Option<Reply>> {
    let Value::Array(array) = receiver else {
        return Ok(None);
    };
    let length = array.items().len();
    let meter = context.meter();
    let value = match method {
        Method::Push => {
            let item = argument(arguments, 0, "push")?.clone();
            with_room(array, meter)?.push(item);
            Value::Nil
        }
        Method::Pop => Value::option(own_array(array, meter)?.items_mut().pop()),
        Method::Insert => {
            let place = int_of("insert", argument(arguments, 0, "insert")?)?;
            let item = argument(arguments, 1, "insert")?.clone();
            let at = usize::try_from(place)
                .ok()
                .filter(|at| *at <= length)
                .ok_or_else(|| Fault::index(place, length))?;
            meter.work((length - at) / 4)?;
            with_room(array, meter)?.insert(at, item);
            Value::Nil
        }
        Method::Remove => {
            let place = int_of("remove", argument(arguments, 0, "remove")?)?;
            let at = usize::try_from(place)
                .ok()
                .filter(|at| *at < length)
                .ok_or_else(|| Fault::index(place, length))?;
            meter.work((length - at) / 4)?;
            own_array(array, meter)?.items_mut().remove(at)
        }
        Method::Clear => {
            *array = Arc::default();
            Value::Nil
        }
        Method::Reverse => {
            meter.work(length / 4)?;
            own_array(array, meter)?.items_mut().reverse();
            receiver.clone()
        }
        Method::Sort => {
            sort(own_array(array, meter)?.items_mut(), meter)?;
            receiver.clone()
        }
        _ => return Ok(None),
    };
    Ok(Some(value.into()))
}

/// The values, to add one: copied if somebody else sees them, and with room.
fn with_room<'a>(array: &'a mut Arc<Array>, meter: &mut Meter) -> Outcome<&'a mut Vec<Value>> {
    let items = own_array(array, meter)?.items_mut();
    if items.len() == items.capacity() {
        grow(items, meter)?;
    }
    Ok(items)
}

/// Where a value is.
pub(super) fn position(
    items: &[Value],
    wanted: &Value,
    meter: &mut Meter,
) -> Outcome<Option<usize>> {
    for (place, item) in items.iter().enumerate() {
        meter.work(1)?;
        if equal(item, wanted, meter)? {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

/// Numbers or texts, equal ones in their order.
fn sort(items: &mut [Value], meter: &mut Meter) -> Outcome<()> {
    // Looked at before: an order with exceptions is none.
    meter.work(items.len())?;
    let mut bytes = 0;
    if let Some(first) = items.first() {
        for item in items.iter() {
            match (first, item) {
                (Value::Text(_), Value::Text(text)) => bytes += text.len(),
                (first, item) => drop(compare(first, item)?),
            }
        }
    }
    // Each is compared with as many as its number has digits; texts may be alike for long.
    let rounds = items.len().checked_ilog2().unwrap_or(0) as usize + 1;
    meter.work((items.len() / 4 + bytes / 64).saturating_mul(rounds))?;
    meter.ask(8 * items.len())?;
    let is_nan = |value: &Value| matches!(value, Value::Float(number) if number.is_nan());
    items.sort_by(|a, b| match compare(a, b) {
        Ok(Some(order)) => order,
        // What is no number comes last.
        Ok(None) | Err(_) => is_nan(a).cmp(&is_nan(b)),
    });
    Ok(())
}

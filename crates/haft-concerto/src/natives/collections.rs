//! `std::collections`: sets, queues and stacks as values; every method gives a new one.

use super::array::position;
use super::builtins::int;
use super::methods::argument;
use super::{Context, Native, array_of, give};
use crate::load::Method;
use crate::value::{Unique, Value, equal};
use crate::vm::{Meter, Outcome, Reply};

pub(super) const ALL: &[Native] = &[
    Native::new("std::collections::Set::new", (0, 0), |_, _| {
        give(make("Set", Vec::new()))
    }),
    Native::new("std::collections::Set::from", (1, 1), |context, a| {
        let items = array_of("Set::from", &a[0])?;
        give(make(
            "Set",
            Unique::of(items, context.meter())?.into_items(),
        ))
    }),
    Native::new("std::collections::Queue::new", (0, 0), |_, _| {
        give(make("Queue", Vec::new()))
    }),
    Native::new("std::collections::Stack::new", (0, 0), |_, _| {
        give(make("Stack", Vec::new()))
    }),
];

fn make(name: &str, items: Vec<Value>) -> Value {
    Value::record(name, vec![("items", Value::array(items))])
}

fn items(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Struct(object) => match object.get("items") {
            Some(Value::Array(array)) => Some(array.items()),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn call(
    context: &mut Context<'_>,
    receiver: &Value,
    method: Method,
    arguments: &[Value],
) -> Outcome<Option<Reply>> {
    let kind = receiver.type_name();
    let Some(items_here) = items(receiver).filter(|_| matches!(kind, "Set" | "Queue" | "Stack"))
    else {
        return Ok(None);
    };
    let meter = context.meter();
    let first = || argument(arguments, 0, kind);
    let value = match (kind, method) {
        (_, Method::Len) => int(items_here.len()),
        (_, Method::IsEmpty) => Value::Bool(items_here.is_empty()),
        ("Set", _) => return set(meter, items_here, method, arguments),
        ("Queue", Method::Enqueue) | ("Stack", Method::Push) => {
            make(kind, and(items_here, first()?, meter)?)
        }
        ("Queue", Method::Dequeue | Method::Peek) => Value::option(items_here.first().cloned()),
        ("Stack", Method::Pop | Method::Peek) => Value::option(items_here.last().cloned()),
        ("Queue", Method::Rest) => {
            let rest = items_here.get(1..).unwrap_or_default();
            meter.copy(rest.len())?;
            make(kind, rest.to_vec())
        }
        ("Stack", Method::Rest) => {
            let rest = &items_here[..items_here.len().saturating_sub(1)];
            meter.copy(rest.len())?;
            make(kind, rest.to_vec())
        }
        _ => return Ok(None),
    };
    Ok(Some(value.into()))
}

/// A copy with one more.
fn and(items: &[Value], more: &Value, meter: &mut Meter) -> Outcome<Vec<Value>> {
    meter.copy(items.len() + 1)?;
    let mut all = Vec::with_capacity(items.len() + 1);
    all.extend_from_slice(items);
    all.push(more.clone());
    Ok(all)
}

/// Methods of sets.
fn set(
    meter: &mut Meter,
    items_here: &[Value],
    method: Method,
    arguments: &[Value],
) -> Outcome<Option<Reply>> {
    let first = || argument(arguments, 0, "Set");
    let other = || -> Outcome<&[Value]> {
        let value = first()?;
        items(value).ok_or_else(|| super::wrong("Set", "Set", value))
    };
    let value = match method {
        Method::Contains => {
            let found = position(items_here, first()?, meter)?;
            return Ok(Some(Value::Bool(found.is_some()).into()));
        }
        Method::Insert => {
            let value = first()?;
            if position(items_here, value, meter)?.is_some() {
                meter.copy(items_here.len())?;
                items_here.to_vec()
            } else {
                and(items_here, value, meter)?
            }
        }
        Method::Remove => {
            let gone = first()?;
            let mut kept = Vec::new();
            for item in items_here {
                if !equal(item, gone, meter)? {
                    kept.push(item.clone());
                }
            }
            meter.copy(kept.len())?;
            kept
        }
        Method::Union => {
            let both = items_here.iter().chain(other()?);
            Unique::of(both, meter)?.into_items()
        }
        Method::Intersection | Method::Difference => {
            let other = Unique::of(other()?, meter)?;
            let wanted = method == Method::Intersection;
            let mut kept = Vec::new();
            for item in items_here {
                if other.contains(item, meter)? == wanted {
                    kept.push(item.clone());
                }
            }
            meter.charge(16 * kept.len())?;
            kept
        }
        _ => return Ok(None),
    };
    Ok(Some(make("Set", value).into()))
}

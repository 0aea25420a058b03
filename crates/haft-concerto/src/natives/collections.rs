//! `std::collections`: sets, queues and stacks as values; every method gives a new one.

use super::builtins::int;
use super::methods::argument;
use super::{Native, array_of, give};
use crate::load::Method;
use crate::value::Value;
use crate::vm::{Outcome, Reply};

pub(super) const ALL: &[Native] = &[
    Native::new("std::collections::Set::new", (0, 0), |_, _| {
        give(make("Set", Vec::new()))
    }),
    Native::new("std::collections::Set::from", (1, 1), |_, a| {
        give(make("Set", unique(array_of("Set::from", &a[0])?)))
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

fn unique(items: &[Value]) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for item in items {
        if !all.contains(item) {
            all.push(item.clone());
        }
    }
    all
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
    receiver: &Value,
    method: Method,
    arguments: &[Value],
) -> Outcome<Option<Reply>> {
    let kind = receiver.type_name();
    let Some(items_here) = items(receiver).filter(|_| matches!(kind, "Set" | "Queue" | "Stack"))
    else {
        return Ok(None);
    };
    let first = || argument(arguments, 0, kind);
    let other = || -> Outcome<&[Value]> {
        let value = first()?;
        items(value).ok_or_else(|| super::wrong("Set", "Set", value))
    };
    let value = match (kind, method) {
        (_, Method::Len) => int(items_here.len()),
        (_, Method::IsEmpty) => Value::Bool(items_here.is_empty()),
        ("Set", Method::Contains) => Value::Bool(items_here.contains(first()?)),
        ("Set", Method::Insert) => {
            let mut all = items_here.to_vec();
            if !all.contains(first()?) {
                all.push(first()?.clone());
            }
            make(kind, all)
        }
        ("Set", Method::Remove) => {
            let gone = first()?;
            make(
                kind,
                items_here
                    .iter()
                    .filter(|item| *item != gone)
                    .cloned()
                    .collect(),
            )
        }
        ("Set", Method::Union) => make(
            kind,
            unique(
                &items_here
                    .iter()
                    .chain(other()?)
                    .cloned()
                    .collect::<Vec<_>>(),
            ),
        ),
        ("Set", Method::Intersection) => {
            let other = other()?;
            make(
                kind,
                items_here
                    .iter()
                    .filter(|item| other.contains(item))
                    .cloned()
                    .collect(),
            )
        }
        ("Set", Method::Difference) => {
            let other = other()?;
            make(
                kind,
                items_here
                    .iter()
                    .filter(|item| !other.contains(item))
                    .cloned()
                    .collect(),
            )
        }
        ("Queue", Method::Enqueue) | ("Stack", Method::Push) => {
            let mut all = items_here.to_vec();
            all.push(first()?.clone());
            make(kind, all)
        }
        ("Queue", Method::Dequeue | Method::Peek) => Value::option(items_here.first().cloned()),
        ("Stack", Method::Pop | Method::Peek) => Value::option(items_here.last().cloned()),
        ("Queue", Method::Rest) => make(kind, items_here.get(1..).unwrap_or_default().to_vec()),
        ("Stack", Method::Rest) => make(
            kind,
            items_here[..items_here.len().saturating_sub(1)].to_vec(),
        ),
        _ => return Ok(None),
    };
    Ok(Some(value.into()))
}

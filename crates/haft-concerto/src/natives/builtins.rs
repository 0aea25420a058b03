//! Functions without a module (§11).

use super::{Context, MANY, Native, environment, give, text_of, wrong};
use crate::value::{Items, Map, Value, equal};
use crate::vm::{Failure, Outcome, Reply, Stop};

pub(super) const ALL: &[Native] = &[
    Native::new("Ok", (1, 1), |_, a| give(Value::ok(a[0].clone()))),
    Native::new("Err", (1, 1), |_, a| give(Value::err(a[0].clone()))),
    Native::new("Some", (1, 1), |_, a| give(Value::some(a[0].clone()))),
    Native::new("print", (0, MANY), |context, a| say(context, a, "")),
    Native::new("println", (0, MANY), |context, a| say(context, a, "\n")),
    Native::new("len", (1, 1), |_, a| length(&a[0])),
    Native::new("typeof", (1, 1), |_, a| give(a[0].type_name())),
    Native::new("env", (1, 1), |context, a| {
        let name = environment::allowed(context, text_of("env", &a[0])?)?;
        give(std::env::var(name).map_or(Value::Nil, Value::text))
    }),
    Native::new("panic", (0, 1), |_, a| {
        Err(Failure::stop(Stop::Panic(
            a.first().map(Value::to_string).unwrap_or_default(),
        )))
    }),
    Native::new("assert", (1, 2), |_, a| {
        if a[0].is_truthy() {
            return give(Value::Nil);
        }
        Err(failed(match a.get(1) {
            Some(text) => text.to_string(),
            None => format!("expected truthy value, got {}", a[0]),
        }))
    }),
    Native::new("assert_eq", (2, 2), |context, a| {
        if equal(&a[0], &a[1], context.meter())? {
            give(Value::Nil)
        } else {
            Err(failed(format!("{} != {}", a[0], a[1])))
        }
    }),
    Native::new("assert_ne", (2, 2), |context, a| {
        if equal(&a[0], &a[1], context.meter())? {
            Err(failed(format!("{} == {} (expected not equal)", a[0], a[1])))
        } else {
            give(Value::Nil)
        }
    }),
    Native::new("test_emits", (0, 0), |context, _| {
        let machine = &mut *context.machine;
        let kept = machine.emits.as_deref().unwrap_or_default();
        let mut items = Items::with_room(&mut machine.meter, kept.len())?;
        let emits = kept.iter().map(|(channel, payload)| {
            Value::record(
                "Emit",
                vec![
                    ("channel", Value::from(channel.as_str())),
                    ("payload", payload.clone()),
                ],
            )
        });
        // A shape of its own each.
        items.extend(emits, 320)?;
        give(items.array()?)
    }),
    Native::new("ToolError::new", (1, 1), |_, a| {
        give(Value::record("ToolError", vec![("message", a[0].clone())]))
    }),
    Native::new("Map::new", (0, 0), |_, _| give(Value::map(Map::default()))),
    Native::new("Array::new", (0, 0), |_, _| give(Value::array(Vec::new()))),
];

fn failed(text: String) -> Box<Failure> {
    Failure::stop(Stop::Assertion(text))
}

fn say(context: &mut Context<'_>, arguments: &[Value], end: &str) -> Outcome<Reply> {
    let text = context.meter().text(|out| {
        for (place, argument) in arguments.iter().enumerate() {
            if place > 0 {
                out.push(" ")?;
            }
            out.show(argument)?;
        }
        out.push(end)
    })?;
    context.machine.output.print(&text);
    give(Value::Nil)
}

fn length(value: &Value) -> Outcome<Reply> {
    let length = match value {
        Value::Text(text) => text.len(),
        Value::Array(array) => array.items().len(),
        Value::Map(map) => map.len(),
        Value::Range(range) => return give(range.len()),
        other => return Err(wrong("len", "String, Array or Map", other)),
    };
    give(int(length))
}

/// A count as an Int.
pub(super) fn int(count: usize) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

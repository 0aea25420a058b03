//! `std::string`.

use super::builtins::int;
use super::{Context, Native, array_of, count_of, give, int_of, text_of};
use crate::value::Value;
use crate::vm::{Outcome, Reply};

pub(super) const ALL: &[Native] = &[
    Native::new("std::string::split", (2, 2), |_, a| {
        give(split(text_of("split", &a[0])?, text_of("split", &a[1])?))
    }),
    Native::new("std::string::join", (2, 2), |context, a| {
        let (items, separator) = (array_of("join", &a[0])?, text_of("join", &a[1])?);
        give(join(context, items, separator)?)
    }),
    Native::new("std::string::trim", (1, 1), |_, a| {
        give(text_of("trim", &a[0])?.trim())
    }),
    Native::new("std::string::trim_start", (1, 1), |_, a| {
        give(text_of("trim_start", &a[0])?.trim_start())
    }),
    Native::new("std::string::trim_end", (1, 1), |_, a| {
        give(text_of("trim_end", &a[0])?.trim_end())
    }),
    Native::new("std::string::replace", (3, 3), |context, a| {
        let (text, from) = (text_of("replace", &a[0])?, text_of("replace", &a[1])?);
        replace(context, text, from, text_of("replace", &a[2])?)
    }),
    Native::new("std::string::to_upper", (1, 1), |_, a| {
        give(text_of("to_upper", &a[0])?.to_uppercase())
    }),
    Native::new("std::string::to_lower", (1, 1), |_, a| {
        give(text_of("to_lower", &a[0])?.to_lowercase())
    }),
    Native::new("std::string::contains", (2, 2), |_, a| {
        give(text_of("contains", &a[0])?.contains(text_of("contains", &a[1])?))
    }),
    Native::new("std::string::starts_with", (2, 2), |_, a| {
        give(text_of("starts_with", &a[0])?.starts_with(text_of("starts_with", &a[1])?))
    }),
    Native::new("std::string::ends_with", (2, 2), |_, a| {
        give(text_of("ends_with", &a[0])?.ends_with(text_of("ends_with", &a[1])?))
    }),
    Native::new("std::string::substring", (3, 3), |_, a| {
        let text = text_of("substring", &a[0])?;
        let (from, to) = (count_of("substring", &a[1])?, count_of("substring", &a[2])?);
        give(
            text.chars()
                .skip(from)
                .take(to.saturating_sub(from))
                .collect::<String>(),
        )
    }),
    Native::new("std::string::len", (1, 1), |_, a| {
        give(int(text_of("len", &a[0])?.chars().count()))
    }),
    Native::new("std::string::repeat", (2, 2), |context, a| {
        repeat(context, text_of("repeat", &a[0])?, int_of("repeat", &a[1])?)
    }),
    Native::new("std::string::reverse", (1, 1), |_, a| {
        give(text_of("reverse", &a[0])?.chars().rev().collect::<String>())
    }),
    Native::new("std::string::parse_int", (1, 1), |_, a| {
        give(parse_int(text_of("parse_int", &a[0])?))
    }),
    Native::new("std::string::parse_float", (1, 1), |_, a| {
        give(parse_float(text_of("parse_float", &a[0])?))
    }),
];

pub(super) fn split(text: &str, separator: &str) -> Value {
    if separator.is_empty() {
        return Value::array(text.chars().map(|c| Value::Text(c.into())).collect());
    }
    Value::array(text.split(separator).map(Value::from).collect())
}

pub(super) fn join(context: &mut Context<'_>, items: &[Value], separator: &str) -> Outcome<String> {
    let mut text = String::new();
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            text.push_str(separator);
        }
        item.display_into(&mut text);
        // An array may hold the same long text many times.
        context.machine.heap.room(text.len())?;
    }
    context.machine.heap.charge(text.len())?;
    Ok(text)
}

pub(super) fn replace(
    context: &mut Context<'_>,
    text: &str,
    from: &str,
    to: &str,
) -> Outcome<Reply> {
    let more = text.matches(from).count().saturating_mul(to.len());
    context
        .machine
        .heap
        .charge(text.len().saturating_add(more))?;
    give(text.replace(from, to))
}

pub(super) fn repeat(context: &mut Context<'_>, text: &str, count: i64) -> Outcome<Reply> {
    let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    context
        .machine
        .heap
        .charge(text.len().saturating_mul(count))?;
    give(text.repeat(count))
}

pub(super) fn parse_int(text: &str) -> Value {
    Value::result(
        text.trim()
            .parse()
            .map(Value::Int)
            .map_err(|_| format!("cannot parse '{text}' as Int")),
    )
}

pub(super) fn parse_float(text: &str) -> Value {
    Value::result(
        text.trim()
            .parse()
            .map(Value::Float)
            .map_err(|_| format!("cannot parse '{text}' as Float")),
    )
}

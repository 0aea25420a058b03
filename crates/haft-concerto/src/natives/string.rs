//! `std::string`.

use super::builtins::int;
use super::{Native, array_of, count_of, give, int_of, text_of};
use crate::value::{Items, Value, brief};
use crate::vm::{Meter, Outcome};

pub(super) const ALL: &[Native] = &[
    Native::new("std::string::split", (2, 2), |context, a| {
        let text = context.read("split", &a[0])?;
        give(split(context.meter(), text, text_of("split", &a[1])?)?)
    }),
    Native::new("std::string::join", (2, 2), |context, a| {
        let (items, separator) = (array_of("join", &a[0])?, text_of("join", &a[1])?);
        give(join(context.meter(), items, separator)?)
    }),
    Native::new("std::string::trim", (1, 1), |context, a| {
        let text = context.read("trim", &a[0])?;
        give(context.part(text.trim())?)
    }),
    Native::new("std::string::trim_start", (1, 1), |context, a| {
        let text = context.read("trim_start", &a[0])?;
        give(context.part(text.trim_start())?)
    }),
    Native::new("std::string::trim_end", (1, 1), |context, a| {
        let text = context.read("trim_end", &a[0])?;
        give(context.part(text.trim_end())?)
    }),
    Native::new("std::string::replace", (3, 3), |context, a| {
        let (text, from) = (text_of("replace", &a[0])?, text_of("replace", &a[1])?);
        give(replace(
            context.meter(),
            text,
            from,
            text_of("replace", &a[2])?,
        )?)
    }),
    Native::new("std::string::to_upper", (1, 1), |context, a| {
        give(to_upper(context.meter(), text_of("to_upper", &a[0])?)?)
    }),
    Native::new("std::string::to_lower", (1, 1), |context, a| {
        give(to_lower(context.meter(), text_of("to_lower", &a[0])?)?)
    }),
    Native::new("std::string::contains", (2, 2), |context, a| {
        let text = context.read("contains", &a[0])?;
        give(text.contains(context.read("contains", &a[1])?))
    }),
    Native::new("std::string::starts_with", (2, 2), |context, a| {
        let text = text_of("starts_with", &a[0])?;
        give(text.starts_with(context.read("starts_with", &a[1])?))
    }),
    Native::new("std::string::ends_with", (2, 2), |context, a| {
        let text = text_of("ends_with", &a[0])?;
        give(text.ends_with(context.read("ends_with", &a[1])?))
    }),
    Native::new("std::string::substring", (3, 3), |context, a| {
        let text = context.read("substring", &a[0])?;
        let (from, to) = (count_of("substring", &a[1])?, count_of("substring", &a[2])?);
        let rest = text.split_at(byte_of(text, from)).1;
        let end = byte_of(rest, to.saturating_sub(from));
        give(context.part(&rest[..end])?)
    }),
    Native::new("std::string::len", (1, 1), |context, a| {
        give(int(context.read("len", &a[0])?.chars().count()))
    }),
    Native::new("std::string::repeat", (2, 2), |context, a| {
        let (text, count) = (text_of("repeat", &a[0])?, int_of("repeat", &a[1])?);
        give(repeat(context.meter(), text, count)?)
    }),
    Native::new("std::string::reverse", (1, 1), |context, a| {
        give(reverse(context.meter(), text_of("reverse", &a[0])?)?)
    }),
    Native::new("std::string::parse_int", (1, 1), |context, a| {
        give(parse_int(context.read("parse_int", &a[0])?))
    }),
    Native::new("std::string::parse_float", (1, 1), |context, a| {
        give(parse_float(context.read("parse_float", &a[0])?))
    }),
];

/// Where the character of a number begins, or the end.
pub(super) fn byte_of(text: &str, character: usize) -> usize {
    let place = text.char_indices().nth(character);
    place.map_or(text.len(), |(place, _)| place)
}

pub(super) fn split(meter: &mut Meter, text: &str, separator: &str) -> Outcome<Value> {
    let mut items = Items::new(meter);
    if separator.is_empty() {
        items.extend(text.chars().map(|c| Value::Text(c.into())), 0)?;
    } else {
        for part in text.split(separator) {
            items.push_text(part)?;
        }
    }
    items.array()
}

pub(super) fn join(meter: &mut Meter, items: &[Value], separator: &str) -> Outcome<String> {
    meter.work(items.len())?;
    meter.text(|out| {
        for (place, item) in items.iter().enumerate() {
            if place > 0 {
                out.push(separator)?;
            }
            // An array may hold the same long text many times.
            out.show(item)?;
        }
        Ok(())
    })
}

pub(super) fn replace(meter: &mut Meter, text: &str, from: &str, to: &str) -> Outcome<String> {
    meter.read(2 * text.len())?;
    meter.text(|out| {
        let mut last = 0;
        for (place, found) in text.match_indices(from) {
            out.push(&text[last..place])?;
            out.push(to)?;
            last = place + found.len();
        }
        out.push(&text[last..])
    })
}

pub(super) fn repeat(meter: &mut Meter, text: &str, count: i64) -> Outcome<String> {
    let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    let length = text.len().saturating_mul(count);
    meter.ask(length)?;
    meter.work(length / 64)?;
    Ok(text.repeat(count))
}

pub(super) fn to_upper(meter: &mut Meter, text: &str) -> Outcome<String> {
    meter.work(text.len() / 2)?;
    meter.text(|out| {
        for character in text.chars() {
            out.each(character.to_uppercase())?;
        }
        Ok(())
    })
}

pub(super) fn to_lower(meter: &mut Meter, text: &str) -> Outcome<String> {
    meter.work(text.len() / 2)?;
    // The one letter whose small form depends on what stands around it.
    if text.contains('\u{3a3}') {
        meter.ask(2 * text.len())?;
        return Ok(text.to_lowercase());
    }
    meter.text(|out| {
        for character in text.chars() {
            out.each(character.to_lowercase())?;
        }
        Ok(())
    })
}

pub(super) fn reverse(meter: &mut Meter, text: &str) -> Outcome<String> {
    meter.work(text.len() / 4)?;
    meter.text(|out| out.each(text.chars().rev()))
}

pub(super) fn parse_int(text: &str) -> Value {
    Value::result(
        text.trim()
            .parse()
            .map(Value::Int)
            .map_err(|_| format!("cannot parse '{}' as Int", brief(text))),
    )
}

pub(super) fn parse_float(text: &str) -> Value {
    Value::result(
        text.trim()
            .parse()
            .map(Value::Float)
            .map_err(|_| format!("cannot parse '{}' as Float", brief(text))),
    )
}

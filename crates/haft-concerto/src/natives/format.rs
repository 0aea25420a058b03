//! `std::fmt` and `std::log`.

use super::{Context, Native, array_of, count_of, give, text_of};
use crate::value::Value;
use crate::vm::{Outcome, Reply};

pub(super) const ALL: &[Native] = &[
    Native::new("std::fmt::format", (1, 2), |_, a| {
        let text = text_of("format", &a[0])?;
        let values = a
            .get(1)
            .map_or(Ok(&[][..]), |values| array_of("format", values))?;
        give(format(text, values))
    }),
    Native::new("std::fmt::pad_left", (2, 3), |context, a| {
        pad(context, a, true)
    }),
    Native::new("std::fmt::pad_right", (2, 3), |context, a| {
        pad(context, a, false)
    }),
    Native::new("std::fmt::truncate", (2, 2), |_, a| {
        let (text, count) = (text_of("truncate", &a[0])?, count_of("truncate", &a[1])?);
        give(text.chars().take(count).collect::<String>())
    }),
    Native::new("std::fmt::indent", (2, 2), |context, a| {
        let (text, count) = (text_of("indent", &a[0])?, count_of("indent", &a[1])?);
        let blanks = text.lines().count().saturating_mul(count);
        let size = text.len().saturating_add(blanks);
        context.machine.heap.charge(size)?;
        let mut out = String::with_capacity(size);
        for (place, line) in text.lines().enumerate() {
            if place > 0 {
                out.push('\n');
            }
            out.extend(std::iter::repeat_n(' ', count));
            out.push_str(line);
        }
        give(out)
    }),
    Native::new("std::log::info", (1, 1), |context, a| {
        log(context, "[INFO] ", &a[0])
    }),
    Native::new("std::log::warn", (1, 1), |context, a| {
        log(context, "[WARN] ", &a[0])
    }),
    Native::new("std::log::error", (1, 1), |context, a| {
        log(context, "[ERROR]", &a[0])
    }),
    Native::new("std::log::debug", (1, 1), |context, a| {
        log(context, "[DEBUG]", &a[0])
    }),
];

fn log(context: &mut Context<'_>, level: &str, text: &Value) -> Outcome<Reply> {
    context.machine.output.log(&format!("{level} {text}"));
    give(Value::Nil)
}

/// Each `{}` is the next value; those that have none stay.
fn format(text: &str, values: &[Value]) -> String {
    let mut values = values.iter();
    let mut parts = text.split("{}");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match values.next() {
            Some(value) => value.display_into(&mut out),
            None => out.push_str("{}"),
        }
        out.push_str(part);
    }
    out
}

fn pad(context: &mut Context<'_>, arguments: &[Value], left: bool) -> Outcome<Reply> {
    let text = match &arguments[0] {
        Value::Text(text) => text.to_string(),
        other => other.to_string(),
    };
    let width = count_of("pad", &arguments[1])?;
    let fill = arguments
        .get(2)
        .map_or(Ok(" "), |fill| text_of("pad", fill))?;
    let missing = width.saturating_sub(text.chars().count());
    let fill: String = fill.chars().take(1).collect();
    let size = missing.saturating_mul(fill.len());
    context.machine.heap.charge(size)?;
    let fill = fill.repeat(missing);
    give(if left { fill + &text } else { text + &fill })
}

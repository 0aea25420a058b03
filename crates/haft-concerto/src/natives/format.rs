//! `std::fmt` and `std::log`.

use super::string::byte_of;
use super::{Context, Native, array_of, count_of, give, text_of};
use crate::value::Value;
use crate::vm::{Meter, Outcome, Reply};

pub(super) const ALL: &[Native] = &[
    Native::new("std::fmt::format", (1, 2), |context, a| {
        let text = context.read("format", &a[0])?;
        let values = a
            .get(1)
            .map_or(Ok(&[][..]), |values| array_of("format", values))?;
        give(format(context.meter(), text, values)?)
    }),
    Native::new("std::fmt::pad_left", (2, 3), |context, a| {
        pad(context, a, true)
    }),
    Native::new("std::fmt::pad_right", (2, 3), |context, a| {
        pad(context, a, false)
    }),
    Native::new("std::fmt::truncate", (2, 2), |context, a| {
        let (text, count) = (text_of("truncate", &a[0])?, count_of("truncate", &a[1])?);
        context.meter().read(count.min(text.len()))?;
        give(context.part(&text[..byte_of(text, count)])?)
    }),
    Native::new("std::fmt::indent", (2, 2), |context, a| {
        let (text, count) = (context.read("indent", &a[0])?, count_of("indent", &a[1])?);
        let blanks = text.lines().count().saturating_mul(count);
        context.meter().room(text.len().saturating_add(blanks))?;
        give(context.meter().text(|out| {
            for (place, line) in text.lines().enumerate() {
                if place > 0 {
                    out.push("\n")?;
                }
                out.each(std::iter::repeat_n(' ', count))?;
                out.push(line)?;
            }
            Ok(())
        })?)
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
    let line = context.meter().text(|out| {
        out.push(level)?;
        out.push(" ")?;
        out.show(text)
    })?;
    context.machine.output.log(&line);
    give(Value::Nil)
}

/// Each `{}` is the next value; those that have none stay.
fn format(meter: &mut Meter, text: &str, values: &[Value]) -> Outcome<String> {
    let mut values = values.iter();
    let mut parts = text.split("{}");
    meter.text(|out| {
        out.push(parts.next().unwrap_or_default())?;
        for part in parts {
            match values.next() {
                Some(value) => out.show(value)?,
                None => out.push("{}")?,
            }
            out.push(part)?;
        }
        Ok(())
    })
}

fn pad(context: &mut Context<'_>, arguments: &[Value], left: bool) -> Outcome<Reply> {
    let meter = context.meter();
    let text = meter.shown(&arguments[0])?;
    let width = count_of("pad", &arguments[1])?;
    let fill = arguments
        .get(2)
        .map_or(Ok(" "), |fill| text_of("pad", fill))?;
    meter.read(text.len())?;
    let missing = width.saturating_sub(text.chars().count());
    let fill = fill.chars().next();
    let size = missing.saturating_mul(fill.map_or(0, char::len_utf8));
    meter.room(size.saturating_add(text.len()))?;
    let fill = fill
        .into_iter()
        .flat_map(|fill| std::iter::repeat_n(fill, missing));
    give(meter.text(|out| {
        if left {
            out.each(fill)?;
            out.push(&text)
        } else {
            out.push(&text)?;
            out.each(fill)
        }
    })?)
}

//! The display form of values (§4).

use std::fmt::{self, Write};
use std::sync::Arc;

use super::build::Sink;
use super::{Enum, Map, Struct, Value};

/// How long the display form becomes in messages, where it is cut; an ellipsis follows. What a program
/// makes of its values is never cut: that goes through [`Meter::shown`](crate::vm::Meter::shown).
const LONGEST: usize = 1 << 20;

/// For messages: what is very long is cut, visibly.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Text is as long as it is; all else may be shared within itself, and be much longer than
        // what it takes in memory.
        if let Self::Text(text) = self {
            return f.write_str(text);
        }
        let mut capped = Capped {
            out: f,
            left: LONGEST,
        };
        match write(self, &mut capped) {
            Err(fmt::Error) if capped.left == 0 => f.write_str("…"),
            result => result,
        }
    }
}

/// Writes so much and no more.
struct Capped<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
    left: usize,
}

impl Sink for Capped<'_, '_> {
    type Stop = fmt::Error;

    fn put(&mut self, text: &str) -> fmt::Result {
        if text.len() > self.left {
            let cut = text.floor_char_boundary(self.left);
            self.left = 0;
            self.out.write_str(&text[..cut])?;
            return Err(fmt::Error);
        }
        self.left -= text.len();
        self.out.write_str(text)
    }

    fn step(&mut self) -> fmt::Result {
        Ok(())
    }
}

/// The digits of an Int, without the ways of formatting: most of what programs put together is text
/// and whole numbers.
pub(super) fn digits(value: i64, buffer: &mut [u8; 20]) -> &str {
    let mut rest = value.unsigned_abs();
    let mut from = buffer.len();
    loop {
        from -= 1;
        // A digit is below 10.
        buffer[from] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        // There are at most 19 digits.
        from -= 1;
        buffer[from] = b'-';
    }
    std::str::from_utf8(&buffer[from..]).unwrap_or_default() // all ASCII
}

/// What is begun and not yet closed, and how many of its parts are written. Kept in a list, so that
/// values may be nested as deep as memory goes.
enum Open<'v> {
    List(&'v [Value], usize, &'static str),
    Map(&'v Map, usize),
    /// Names, values, the next place, whether one was written.
    Fields(&'v [Arc<str>], &'v [Value], usize, bool),
    /// The one value, if it is not written yet.
    Boxed(Option<&'v Value>),
}

/// Writes the display form, whole.
pub(super) fn write<'v, S: Sink>(value: &'v Value, out: &mut S) -> Result<(), S::Stop> {
    let mut open: Vec<Open<'v>> = Vec::new();
    let mut scratch = String::new();
    begin(value, out, &mut open, &mut scratch)?;
    while let Some(last) = open.last_mut() {
        match next(last, out)? {
            Some(value) => begin(value, out, &mut open, &mut scratch)?,
            None => {
                open.pop();
            }
        }
    }
    Ok(())
}

/// The next part of something, after what stands before it; or its end.
fn next<'v, S: Sink>(open: &mut Open<'v>, out: &mut S) -> Result<Option<&'v Value>, S::Stop> {
    match open {
        Open::List(items, place, end) => {
            let Some(item) = items.get(*place) else {
                out.put(end)?;
                return Ok(None);
            };
            if *place > 0 {
                out.put(", ")?;
            }
            *place += 1;
            Ok(Some(item))
        }
        Open::Map(map, place) => {
            let Some((key, value)) = map.at(*place) else {
                out.put("}")?;
                return Ok(None);
            };
            out.put(if *place > 0 { ", \"" } else { "\"" })?;
            out.put(key)?;
            out.put("\": ")?;
            *place += 1;
            Ok(Some(value))
        }
        Open::Fields(names, values, place, is_begun) => {
            while matches!(values.get(*place), Some(Value::Absent)) {
                *place += 1;
            }
            let (Some(name), Some(value)) = (names.get(*place), values.get(*place)) else {
                out.put("}")?;
                return Ok(None);
            };
            if *is_begun {
                out.put(", ")?;
            }
            out.put(name)?;
            out.put(": ")?;
            (*place, *is_begun) = (*place + 1, true);
            Ok(Some(value))
        }
        Open::Boxed(inner) => {
            let inner = inner.take();
            if inner.is_none() {
                out.put(")")?;
            }
            Ok(inner)
        }
    }
}

/// Writes a value that holds no others, or the beginning of one that does.
fn begin<'v, S: Sink>(
    value: &'v Value,
    out: &mut S,
    open: &mut Vec<Open<'v>>,
    scratch: &mut String,
) -> Result<(), S::Stop> {
    out.step()?;
    match value {
        Value::Nil | Value::Absent => out.put("nil"),
        Value::Bool(true) => out.put("true"),
        Value::Bool(false) => out.put("false"),
        Value::Text(text) => out.put(text),
        Value::Int(value) => out.put(digits(*value, &mut [0; 20])),
        Value::None => out.put("None"),
        Value::Array(array) => {
            open.push(Open::List(array.items(), 0, "]"));
            out.put("[")
        }
        Value::Map(map) => {
            open.push(Open::Map(map, 0));
            out.put("{")
        }
        Value::Struct(object) => begin_struct(object, out, open),
        Value::Enum(object) => begin_enum(object, out, open),
        Value::Ok(inner) | Value::Err(inner) | Value::Some(inner) => {
            out.put(match value {
                Value::Ok(_) => "Ok(",
                Value::Err(_) => "Err(",
                _ => "Some(",
            })?;
            open.push(Open::Boxed(Some(inner.get())));
            Ok(())
        }
        other => {
            scratch.clear();
            write_plain(other, scratch);
            out.put(scratch)
        }
    }
}

fn begin_struct<'v, S: Sink>(
    object: &'v Struct,
    out: &mut S,
    open: &mut Vec<Open<'v>>,
) -> Result<(), S::Stop> {
    let def = object.def();
    open.push(Open::Fields(&def.fields, object.values(), 0, false));
    out.put(&def.name)?;
    out.put(" {")
}

fn begin_enum<'v, S: Sink>(
    object: &'v Enum,
    out: &mut S,
    open: &mut Vec<Open<'v>>,
) -> Result<(), S::Stop> {
    let def = object.def();
    out.put(&def.type_name)?;
    out.put("::")?;
    out.put(&def.name)?;
    if !def.fields.is_empty() {
        open.push(Open::Fields(&def.fields, object.values(), 0, false));
        out.put(" {")
    } else if object.values().is_empty() {
        Ok(())
    } else {
        open.push(Open::List(object.values(), 0, ")"));
        out.put("(")
    }
}

/// What is short however large the value is. Writing to a String does not fail.
fn write_plain(value: &Value, out: &mut String) {
    let _ = match value {
        Value::Float(value) => write!(out, "{value}"),
        Value::Range(range) => {
            let bound = |bound: Option<i64>| bound.map(|it| it.to_string()).unwrap_or_default();
            let dots = if range.inclusive { "..=" } else { ".." };
            write!(out, "{}{dots}{}", bound(range.from), bound(range.to))
        }
        Value::Function(closure) => write!(out, "<fn {}>", closure.name),
        Value::Native(native) => write!(out, "<fn {}>", native.name),
        Value::Ref(reference) => {
            let (word, name) = (reference.kind.word(), reference.name.replace('\0', "/"));
            write!(out, "<{word} {name}>")
        }
        Value::Builder(builder) => write!(out, "<model builder {}>", builder.target.name),
        _ => out.write_str("<iterator>"),
    };
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, digits};
    use crate::value::Value;
    use crate::vm::{Canceller, Limits, Meter};

    #[test]
    fn ints_are_written_as_the_formatter_writes_them() {
        for value in [0, 7, -7, 10, -10, 1_234_567_890, i64::MAX, i64::MIN] {
            assert_eq!(digits(value, &mut [0; 20]), value.to_string());
        }
    }

    #[test]
    fn deep_values_are_shown_whole() {
        let mut value = Value::Int(1);
        for _ in 0..100_000 {
            value = Value::array(vec![Value::some(value)]);
        }
        let mut meter = Meter::new(&Limits::default(), Canceller::default());
        let shown = meter.shown(&value).expect("it fits");
        assert_eq!(shown.len(), 100_000 * "[Some()]".len() + 1);
        assert!(shown.ends_with(")])]"));
    }

    #[test]
    fn messages_are_cut_where_one_sees_it() {
        let value = Value::array(vec![Value::from("ä".repeat(LONGEST))]);
        let shown = value.to_string();
        assert!(shown.ends_with("ä…"));
        assert!(shown.len() < LONGEST + 4);
    }
}

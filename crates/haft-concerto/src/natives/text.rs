//! Methods of text.

use super::builtins::int;
use super::methods::argument;
use super::{Context, int_of, string, text_of};
use crate::load::Method;
use crate::value::{Items, Text, Value};
use crate::vm::{Outcome, Reply};

pub(super) fn call(
    context: &mut Context<'_>,
    text: &Text,
    method: Method,
    arguments: &mut [Value],
) -> Outcome<Option<Reply>> {
    let other = |name: &str, place: usize| -> Outcome<&str> {
        text_of(name, argument(arguments, place, name)?)
    };
    let meter = context.meter();
    let value = match method {
        Method::Len => int(text.len()),
        Method::IsEmpty => Value::Bool(text.is_empty()),
        Method::Contains => {
            let other = other("contains", 0)?;
            meter.read(text.len() + other.len())?;
            Value::Bool(text.contains(other))
        }
        Method::StartsWith => {
            let other = other("starts_with", 0)?;
            meter.read(other.len())?;
            Value::Bool(text.starts_with(other))
        }
        Method::EndsWith => {
            let other = other("ends_with", 0)?;
            meter.read(other.len())?;
            Value::Bool(text.ends_with(other))
        }
        Method::Trim => {
            meter.read(text.len())?;
            context.part(text.trim())?
        }
        Method::ToUppercase | Method::ToUpper => string::to_upper(meter, text)?.into(),
        Method::ToLowercase | Method::ToLower => string::to_lower(meter, text)?.into(),
        Method::Replace => {
            string::replace(meter, text, other("replace", 0)?, other("replace", 1)?)?.into()
        }
        Method::Split => {
            meter.read(text.len())?;
            string::split(meter, text, other("split", 0)?)?
        }
        Method::Lines => {
            meter.read(text.len())?;
            let mut items = Items::new(meter);
            for line in text.lines() {
                items.push_text(line)?;
            }
            items.array()?
        }
        Method::Chars => string::split(meter, text, "")?,
        Method::Reverse => string::reverse(meter, text)?.into(),
        Method::Repeat => {
            let count = int_of("repeat", argument(arguments, 0, "repeat")?)?;
            string::repeat(meter, text, count)?.into()
        }
        Method::ParseInt => {
            meter.read(text.len())?;
            string::parse_int(text)
        }
        Method::ParseFloat => {
            meter.read(text.len())?;
            string::parse_float(text)
        }
        _ => return Ok(None),
    };
    Ok(Some(value.into()))
}

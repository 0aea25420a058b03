//! Methods of text.

use super::builtins::int;
use super::methods::argument;
use super::{Context, int_of, string, text_of};
use crate::load::Method;
use crate::value::{Text, Value};
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
    let value = match method {
        Method::Len => int(text.len()),
        Method::IsEmpty => Value::Bool(text.is_empty()),
        Method::Contains => Value::Bool(text.contains(other("contains", 0)?)),
        Method::StartsWith => Value::Bool(text.starts_with(other("starts_with", 0)?)),
        Method::EndsWith => Value::Bool(text.ends_with(other("ends_with", 0)?)),
        Method::Trim => Value::from(text.trim()),
        Method::ToUppercase | Method::ToUpper => Value::text(text.to_uppercase()),
        Method::ToLowercase | Method::ToLower => Value::text(text.to_lowercase()),
        Method::Replace => {
            let (from, to) = (other("replace", 0)?, other("replace", 1)?);
            return string::replace(context, text, from, to).map(Some);
        }
        Method::Split => string::split(text, other("split", 0)?),
        Method::Lines => Value::array(text.lines().map(Value::from).collect()),
        Method::Chars => Value::array(text.chars().map(|c| Value::Text(c.into())).collect()),
        Method::Reverse => Value::text(text.chars().rev().collect::<String>()),
        Method::Repeat => {
            let count = int_of("repeat", argument(arguments, 0, "repeat")?)?;
            return string::repeat(context, text, count).map(Some);
        }
        Method::ParseInt => string::parse_int(text),
        Method::ParseFloat => string::parse_float(text),
        _ => return Ok(None),
    };
    Ok(Some(value.into()))
}

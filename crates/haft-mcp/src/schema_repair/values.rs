//! Values that evidently mean another one: `"3"` a number, `"int"` a type.

use serde_json::{Number, Value};

pub(super) fn is_negative(number: &Number) -> bool {
    number.as_f64().is_some_and(|it| it < 0.0)
}

/// A number, or a string that is one.
pub(super) fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => match serde_json::from_str(text.trim()) {
            Ok(Value::Number(number)) => Some(number),
            _ => None,
        },
        _ => None,
    }
}

/// A number that is not negative and has no fraction.
pub(super) fn count(value: &Value) -> Option<Value> {
    let number = number(value)?;
    if let Some(count) = number.as_u64() {
        return Some(count.into());
    }
    let float = number.as_f64()?;
    let is_count = (0.0..=9_007_199_254_740_992.0).contains(&float) && float.fract() == 0.0;
    is_count.then(|| format!("{float}").parse::<u64>().ok().map(Value::from))?
}

pub(super) fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// The distinct strings of a list; none if it is not a list.
pub(super) fn names(value: Value) -> Option<Vec<Value>> {
    let Value::Array(items) = value else {
        return None;
    };
    let mut names: Vec<Value> = Vec::with_capacity(items.len());
    for item in items {
        if item.is_string() && !names.contains(&item) {
            names.push(item);
        }
    }
    Some(names)
}

pub(super) fn is_anchor(name: &str) -> bool {
    let mut characters = name.chars();
    let first = characters.next();
    first.is_some_and(|it| it.is_ascii_alphabetic() || it == '_')
        && characters.all(|it| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.'))
}

pub(super) fn is_address(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"<>\"{}|\\^`".contains(&byte);
    !id.is_empty() && id.bytes().all(is_plain) && !id.trim_end_matches('#').contains('#')
}

/// The type or the list of types that a value of `type` evidently means; none if it means any, or nothing.
pub(super) fn type_of(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => {
            if let Some(kind) = type_named(text) {
                return Some(kind.into());
            }
            let parts: Vec<&str> = text.split(['|', ',']).map(str::trim).collect();
            (parts.len() > 1).then(|| list_of(parts.into_iter().map(Value::from)))?
        }
        Value::Array(kinds) => list_of(kinds.iter().cloned()),
        _ => None,
    }
}

fn list_of(kinds: impl Iterator<Item = Value>) -> Option<Value> {
    let mut list: Vec<Value> = Vec::new();
    for kind in kinds {
        let kind = match kind {
            // The type of nothing.
            Value::Null => "null".into(),
            Value::String(text) => type_named(&text)?.into(),
            _ => return None,
        };
        if !list.contains(&kind) {
            list.push(kind);
        }
    }
    (!list.is_empty()).then_some(Value::Array(list))
}

/// The type that a name stands for in JSON Schema or, if it is not one there, in common languages.
fn type_named(name: &str) -> Option<&'static str> {
    Some(match name.trim().to_ascii_lowercase().as_str() {
        "string" | "str" | "text" | "varchar" => "string",
        "integer" | "int" | "int32" | "int64" | "long" | "uint" | "uint32" | "uint64" => "integer",
        "number" | "float" | "double" | "decimal" | "float32" | "float64" | "num" => "number",
        "boolean" | "bool" => "boolean",
        "object" | "dict" | "map" | "struct" | "record" | "hash" => "object",
        "array" | "list" | "tuple" | "set" | "sequence" => "array",
        "null" | "none" | "nil" | "nonetype" => "null",
        _ => return None,
    })
}

//! Patterns.

use haft_concerto::ast::{Name, Pattern, PatternKind};

use crate::interpret::Oracle;
use crate::value::{Fields, Value};

/// Whether a value fits; what the pattern names is then put into the scope.
pub(crate) fn matches(oracle: &mut Oracle<'_>, pattern: &Pattern, value: &Value) -> bool {
    let height = oracle.env.len();
    let fits = part(oracle, pattern, value);
    if !fits {
        oracle.env.truncate(height);
    }
    fits
}

fn bind(oracle: &mut Oracle<'_>, name: &Name, value: Value) {
    oracle.env.push((name.text.clone(), value));
}

fn all(oracle: &mut Oracle<'_>, patterns: &[Pattern], values: &[Value]) -> bool {
    patterns
        .iter()
        .zip(values)
        .all(|(pattern, value)| part(oracle, pattern, value))
}

fn part(oracle: &mut Oracle<'_>, pattern: &Pattern, value: &Value) -> bool {
    match &pattern.kind {
        PatternKind::Wildcard => true,
        PatternKind::Binding(name) => {
            bind(oracle, name, value.clone());
            true
        }
        PatternKind::At(name, inner) => {
            bind(oracle, name, value.clone());
            part(oracle, inner, value)
        }
        PatternKind::Literal(literal) => {
            let literal = oracle.expr(literal).expect("a literal has a value");
            literal.same(value)
        }
        PatternKind::Range {
            start,
            end,
            inclusive,
        } => {
            let mut side = |it| match oracle.expr(it) {
                Ok(Value::Int(value)) => value,
                other => panic!("{other:?} bounds a range"),
            };
            let (start, end) = (side(start), side(end));
            match value {
                Value::Int(value) if *inclusive => (start..=end).contains(value),
                Value::Int(value) => (start..end).contains(value),
                _ => false,
            }
        }
        PatternKind::Path(path) => match (path.text().as_str(), value) {
            ("None", value) => matches!(value, Value::None),
            (text, Value::Variant(of, name, _)) => text == format!("{of}::{name}"),
            _ => false,
        },
        PatternKind::Call(path, parts) => match (path.text().as_str(), value) {
            ("Ok", Value::Ok(inner))
            | ("Err", Value::Err(inner))
            | ("Some", Value::Some(inner)) => part(oracle, &parts[0], inner),
            (text, Value::Variant(of, name, Fields::Places(values))) => {
                text == format!("{of}::{name}") && all(oracle, parts, values)
            }
            _ => false,
        },
        PatternKind::Struct { path, fields, .. } => {
            let values = match value {
                Value::Struct(name, values) if *name == path.text() => values,
                Value::Variant(of, name, Fields::Names(values))
                    if path.text() == format!("{of}::{name}") =>
                {
                    values
                }
                _ => return false,
            };
            fields.iter().all(|(name, inner)| {
                let found = values.iter().find(|(it, _)| *it == name.text);
                let (_, value) = found.expect("the field is there");
                if let Some(inner) = inner {
                    return part(oracle, inner, value);
                }
                bind(oracle, name, value.clone());
                true
            })
        }
        PatternKind::Tuple(parts) => match value {
            Value::Array(list) => list.len() == parts.len() && all(oracle, parts, list),
            _ => false,
        },
        PatternKind::Array(parts, rest) => {
            let Value::Array(list) = value else {
                return false;
            };
            let fits = match rest {
                Some(_) => list.len() >= parts.len(),
                None => list.len() == parts.len(),
            };
            if !fits || !all(oracle, parts, list) {
                return false;
            }
            if let Some(name) = rest.as_ref().and_then(|rest| rest.name.as_ref()) {
                bind(oracle, name, Value::Array(list[parts.len()..].to_vec()));
            }
            true
        }
        PatternKind::Or(parts) => parts.iter().any(|it| matches(oracle, it, value)),
    }
}

//! Validation errors in words that a model can act on.

use haft_core::{ValidationError, cut};
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use crate::pipeline::MAX_ERRORS;

/// How much of a list is shown.
const SHOWN_CHARS: usize = 200;

/// Words the library's errors: which field, what was expected. No more are read than are kept.
pub(crate) fn explain<'e>(
    errors: impl Iterator<Item = jsonschema::ValidationError<'e>>,
) -> Vec<ValidationError> {
    let mut worded = Vec::new();
    for error in errors {
        word(&error, &mut worded);
        if worded.len() >= MAX_ERRORS {
            break;
        }
    }
    worded
}

fn word(error: &jsonschema::ValidationError<'_>, into: &mut Vec<ValidationError>) {
    use ValidationErrorKind as Kind;
    let path = error.instance_path().as_str();
    match error.kind() {
        Kind::Required { property } => {
            let field = member(path, property.as_str().unwrap_or_default());
            into.push(about(
                error,
                field.clone(),
                format!("missing field '{field}'"),
            ));
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            for name in unexpected.iter().take(MAX_ERRORS) {
                let field = member(path, name);
                into.push(about(
                    error,
                    field.clone(),
                    format!("unexpected field '{field}'"),
                ));
            }
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            match the_branch_meant(path, context) {
                Some(branch) => branch.iter().for_each(|error| word(error, into)),
                None => into.push(about(
                    error,
                    field_name(path),
                    format!("{} matches none of the forms it may have", quoted(path)),
                )),
            }
        }
        kind => {
            let message = format!("{} {}", quoted(path), demand(kind, error.instance()));
            into.push(about(error, field_name(path), message));
        }
    }
}

/// What a keyword asks of a value, as the end of a sentence.
fn demand(kind: &ValidationErrorKind, instance: &Value) -> String {
    use ValidationErrorKind as Kind;
    match kind {
        Kind::Type { .. } if instance.is_null() => "must not be null".into(),
        Kind::Type { kind } => format!("must be {}, got {}", types(kind), type_of(instance)),
        Kind::Enum { options } => format!("must be one of {}", listed(options)),
        Kind::Constant { expected_value } => format!("must be {}", shown(expected_value)),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be greater than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::Pattern { pattern } => format!("must match the pattern {}", cut(pattern)),
        Kind::MinItems { limit } => format!("must have at least {limit} items"),
        Kind::MaxItems { limit } => format!("must have at most {limit} items"),
        Kind::MinProperties { limit } => format!("must have at least {limit} members"),
        Kind::MaxProperties { limit } => format!("must have at most {limit} members"),
        Kind::UniqueItems => "must not hold an item twice".into(),
        Kind::Contains => "lacks an item that it must contain".into(),
        Kind::AdditionalItems { limit } => format!("must have at most {limit} items"),
        Kind::FalseSchema => "must not be given".into(),
        Kind::Not { .. } => "has a form that is ruled out".into(),
        Kind::OneOfMultipleValid { .. } => "matches more than one of the forms it may have".into(),
        Kind::PropertyNames { error } => {
            format!(
                "has a member name that {}",
                demand(error.kind(), error.instance())
            )
        }
        Kind::Custom { message, .. } => cut(message),
        other => format!("does not satisfy `{}`", other.keyword()),
    }
}

/// Of the branches of a union, the one whose errors are worth showing: the only one that accepts
/// the value's own type.
fn the_branch_meant<'e, 'i>(
    path: &str,
    branches: &'e [Vec<jsonschema::ValidationError<'i>>],
) -> Option<&'e [jsonschema::ValidationError<'i>]> {
    let refuses_at_the_door = |errors: &[jsonschema::ValidationError<'_>]| {
        errors.iter().any(|error| {
            error.instance_path().as_str() == path
                && matches!(
                    error.kind(),
                    ValidationErrorKind::Type { .. }
                        | ValidationErrorKind::Constant { .. }
                        | ValidationErrorKind::Enum { .. }
                )
        })
    };
    let mut meant = branches
        .iter()
        .filter(|errors| !refuses_at_the_door(errors));
    match (meant.next(), meant.next()) {
        (Some(branch), None) => Some(branch),
        _ => None,
    }
}

fn about(
    error: &jsonschema::ValidationError<'_>,
    field: String,
    message: String,
) -> ValidationError {
    let path = error.instance_path().as_str();
    let mut worded = ValidationError::new(path, error.kind().keyword(), message);
    worded.sorted_by = field;
    let (expected, actual) = match error.kind() {
        ValidationErrorKind::Type { kind } => (types(kind), type_of(error.instance()).to_owned()),
        ValidationErrorKind::Enum { options } => (listed(options), shown(error.instance())),
        _ => return worded,
    };
    worded.detail.expected = Some(expected);
    worded.detail.actual = Some(actual);
    worded
}

/// `'a.b[0]'`, or a word for the whole.
fn quoted(path: &str) -> String {
    match field_name(path) {
        field if field.is_empty() => "the arguments object".into(),
        field => format!("'{field}'"),
    }
}

fn member(path: &str, name: &str) -> String {
    let name = cut(name);
    match field_name(path) {
        parent if parent.is_empty() => name,
        parent => format!("{parent}.{name}"),
    }
}

/// A JSON pointer the way people write fields: `/a/b/0` is `a.b[0]`.
fn field_name(path: &str) -> String {
    let mut name = String::new();
    for part in path.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if !name.is_empty() && !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            name.push('[');
            name.push_str(&part);
            name.push(']');
        } else {
            if !name.is_empty() {
                name.push('.');
            }
            name.push_str(&part);
        }
    }
    cut(&name)
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(single) => single.to_string(),
        TypeKind::Multiple(set) => {
            let names: Vec<_> = set.iter().map(|single| single.to_string()).collect();
            names.join(" or ")
        }
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn listed(options: &Value) -> String {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut list = String::new();
    for (at, option) in options.iter().enumerate() {
        if at > 0 {
            list.push_str(", ");
        }
        if list.len() > SHOWN_CHARS {
            list.push('…');
            break;
        }
        list.push_str(&shown(option));
    }
    list
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => cut(text),
        other => cut(&other.to_string()),
    }
}

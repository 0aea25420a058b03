//! What a schema asks for, as far as rules can fill it.

use serde_json::{Map, Value};

/// How far references and nested objects are followed.
pub(super) const MAX_DEPTH: usize = 4;

/// What a property may hold.
#[derive(Debug, PartialEq)]
pub(super) enum Kind<'s> {
    /// Exactly one of these.
    OneOf(Vec<&'s Value>),
    Boolean,
    Integer,
    Number,
    String {
        format: Option<&'s str>,
    },
    List(&'s Value),
    Object(&'s Value),
    /// Anything else: no rule fills it.
    Other,
}

/// The kind of a property; references are looked up in the tool's whole schema.
pub(super) fn kind_of<'s>(property: &'s Value, root: &'s Value, depth: usize) -> Kind<'s> {
    if depth > MAX_DEPTH {
        return Kind::Other;
    }
    if let Some(target) = property.get("$ref").and_then(Value::as_str) {
        let found = target.strip_prefix('#').and_then(|path| root.pointer(path));
        return found.map_or(Kind::Other, |found| kind_of(found, root, depth + 1));
    }
    if let Some(value) = property.get("const") {
        return Kind::OneOf(vec![value]);
    }
    if let Some(members) = property.get("enum").and_then(Value::as_array) {
        return Kind::OneOf(members.iter().filter(|member| !member.is_null()).collect());
    }
    let mut keys = ["anyOf", "oneOf", "allOf"].iter();
    let choices = keys.find_map(|key| property.get(*key)?.as_array());
    if let Some(choices) = choices {
        return kind_of_choices(choices, root, depth);
    }
    let kind = match property.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().find(|kind| *kind != "null"),
        kind => kind,
    };
    match kind.and_then(Value::as_str) {
        Some("boolean") => Kind::Boolean,
        Some("integer") => Kind::Integer,
        Some("number") => Kind::Number,
        Some("string") => Kind::String {
            format: property.get("format").and_then(Value::as_str),
        },
        Some("array") => property.get("items").map_or(Kind::Other, Kind::List),
        Some("object") => Kind::Object(property),
        _ => Kind::Other,
    }
}

/// Constants side by side are an enumeration; of other choices the first that is not null counts.
fn kind_of_choices<'s>(choices: &'s [Value], root: &'s Value, depth: usize) -> Kind<'s> {
    let constants: Option<Vec<_>> = choices.iter().map(|choice| choice.get("const")).collect();
    if let Some(constants) = constants {
        return Kind::OneOf(constants);
    }
    let mut choices = choices.iter();
    let choice = choices.find(|choice| choice.get("type") != Some(&Value::from("null")));
    choice.map_or(Kind::Other, |choice| kind_of(choice, root, depth + 1))
}

/// The required properties of an object with their schemas, in the order of its properties.
pub(super) fn required(schema: &Value) -> Vec<(&str, &Value)> {
    static NONE: Value = Value::Null;
    let listed = schema.get("required").and_then(Value::as_array);
    let names: Vec<&str> = listed
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let known = properties.into_iter().flat_map(Map::iter);
    let mut required: Vec<_> = known
        .map(|(name, property)| (name.as_str(), property))
        .filter(|(name, _)| names.contains(name))
        .collect();
    for name in names {
        if !required.iter().any(|(known, _)| *known == name) {
            required.push((name, &NONE));
        }
    }
    required
}

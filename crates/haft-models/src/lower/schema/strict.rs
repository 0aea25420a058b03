//! `OpenAI`'s strict form: every object closed, every property required.

use serde_json::{Map, Value, json};

use super::plain::{admits_null, names_type};
use super::restore::Optional;

/// Words that the strict form knows.
const KNOWN: [&str; 18] = [
    "additionalProperties",
    "anyOf",
    "const",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "properties",
    "required",
    "title",
    "type",
];

const FORMATS: [&str; 9] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "time",
    "uuid",
];

/// Words that cannot be said in the description instead: they change which members there are.
const INEXPRESSIBLE: [&str; 12] = [
    "allOf",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "not",
    "patternProperties",
    "prefixItems",
    "then",
    "unevaluatedProperties",
];

const MAX_DEPTH: usize = 10;

/// The strict form, with what became nullable by it; or why there is none.
pub(super) fn lower(schema: &Value) -> Result<(Value, Optional), String> {
    place(schema, 0)
}

fn place(schema: &Value, depth: usize) -> Result<(Value, Optional), String> {
    let Some(members) = schema.as_object() else {
        return Err("it holds a schema that is no object".into());
    };
    if depth > MAX_DEPTH {
        return Err(format!("it is nested deeper than {MAX_DEPTH}"));
    }
    if let Some(keyword) = INEXPRESSIBLE
        .iter()
        .find(|keyword| members.contains_key(**keyword))
    {
        return Err(format!("`{keyword}` cannot be said"));
    }
    let says = ["type", "anyOf", "oneOf", "enum", "const"];
    if !says.iter().any(|keyword| members.contains_key(*keyword)) {
        return Err("it has a place that admits anything".into());
    }
    let mut optional = Optional::default();
    let mut strict = Map::new();
    let mut aside = Vec::new();
    for (keyword, value) in members {
        match (keyword.as_str(), value) {
            ("properties" | "required" | "additionalProperties" | "items", _) => {}
            ("anyOf" | "oneOf", Value::Array(variants)) => {
                let mut list = Vec::new();
                for variant in variants {
                    let (variant, inner) = place(variant, depth + 1)?;
                    list.push(variant);
                    optional.join(inner);
                }
                strict.insert("anyOf".into(), Value::Array(list));
            }
            ("format", Value::String(name)) if !FORMATS.contains(&name.as_str()) => {
                aside.push(format!("format: {name}"));
            }
            (known, value) if KNOWN.contains(&known) => {
                strict.insert(keyword.clone(), value.clone());
            }
            (other, value) => aside.push(format!("{other}: {value}")),
        }
    }
    if names_type(members.get("type"), "array") {
        let items = members.get("items").ok_or("an array has no `items`")?;
        let (items, inner) = place(items, depth + 1)?;
        strict.insert("items".into(), items);
        optional.items = Some(Box::new(inner));
    }
    if names_type(members.get("type"), "object") {
        object(members, &mut strict, &mut optional, depth)?;
    }
    describe(&mut strict, &aside);
    Ok((Value::Object(strict), optional))
}

fn object(
    members: &Map<String, Value>,
    strict: &mut Map<String, Value>,
    optional: &mut Optional,
    depth: usize,
) -> Result<(), String> {
    let empty = Map::new();
    let properties = members
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let is_closed = match members.get("additionalProperties") {
        Some(Value::Bool(false)) => true,
        // The root of a tool without parameters; elsewhere it is a map of anything.
        None => depth == 0 || !properties.is_empty(),
        Some(_) => false,
    };
    if !is_closed {
        return Err("it has an object with members of any name".into());
    }
    let required = members.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|list| list.iter().any(|r| r == name));
    let mut closed = Map::new();
    for (name, schema) in properties {
        let (mut inner, nested) = place(schema, depth + 1)?;
        optional.properties.insert(name.clone(), nested);
        if admits_null(schema) {
            optional.nullable.insert(name.clone());
        } else if !is_required(name) {
            optional.absent.insert(name.clone());
            make_nullable(&mut inner);
        }
        closed.insert(name.clone(), inner);
    }
    let names: Vec<_> = closed.keys().cloned().collect();
    strict.insert("properties".into(), Value::Object(closed));
    strict.insert("required".into(), json!(names));
    strict.insert("additionalProperties".into(), json!(false));
    Ok(())
}

fn make_nullable(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    if let Some(value) = members.shift_remove("const") {
        members.insert("enum".into(), json!([value]));
    }
    if let Some(Value::Array(list)) = members.get_mut("enum")
        && !list.contains(&Value::Null)
    {
        list.push(Value::Null);
    }
    match members.get_mut("type") {
        Some(name @ Value::String(_)) => *name = json!([name.take(), "null"]),
        Some(Value::Array(names)) => names.push(json!("null")),
        _ => {}
    }
    if let Some(Value::Array(variants)) = members.get_mut("anyOf") {
        variants.push(json!({"type": "null"}));
    }
}

/// Adds to the description what has no other place.
pub(super) fn describe(schema: &mut Map<String, Value>, aside: &[String]) {
    if aside.is_empty() {
        return;
    }
    let aside = aside.join(", ");
    let text = match schema.get("description").and_then(Value::as_str) {
        Some(text) if !text.is_empty() => format!("{text} ({aside})"),
        _ => format!("({aside})"),
    };
    schema.insert("description".into(), Value::String(text));
}

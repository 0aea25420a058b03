//! The schema of an answer, as the provider takes it.
//!
//! It wants every object closed and knows no bounds on numbers, lengths and counts. What it does not
//! know is told in the description: the model may still keep to it. An object that is open on
//! purpose stays so; that this cannot be is the provider's to say.

use serde_json::{Map, Value, json};

/// Keywords that make the provider refuse a schema.
const UNKNOWN: [&str; 13] = [
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "uniqueItems",
    "$schema",
];

/// Keywords whose value holds schemas by name, those whose value is one, and lists of them.
const NAMED: [&str; 3] = ["properties", "$defs", "definitions"];
const SINGLE: [&str; 2] = ["items", "additionalProperties"];
const LISTED: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// The deepest schema that is looked into; the provider refuses deeper ones anyway.
const MAX_DEPTH: usize = 64;

/// Lowers the schema of an answer.
pub(super) fn lower(schema: &Value) -> Value {
    let mut schema = schema.clone();
    close(&mut schema, 0);
    schema
}

fn close(schema: &mut Value, depth: usize) {
    let Some(members) = schema.as_object_mut().filter(|_| depth < MAX_DEPTH) else {
        return;
    };
    let mut told = Map::new();
    for key in UNKNOWN {
        // Whether a list may be empty is the one bound that it knows.
        let is_known = key == "minItems" && members.get(key).is_some_and(|at| *at == 0 || *at == 1);
        if let Some(value) = (!is_known).then(|| members.shift_remove(key)).flatten()
            && key != "$schema"
        {
            told.insert(key.into(), value);
        }
    }
    if !told.is_empty() {
        let told = Value::Object(told).to_string();
        let before = members.get("description").and_then(Value::as_str);
        let description = before.map_or_else(|| told.clone(), |text| format!("{text}\n\n{told}"));
        members.insert("description".into(), description.into());
    }
    let is_object = members.get("type").is_some_and(|kind| kind == "object");
    if is_object || members.contains_key("properties") {
        members
            .entry("additionalProperties")
            .or_insert(json!(false));
    }
    for (key, value) in members.iter_mut() {
        match value {
            Value::Object(named) if NAMED.contains(&key.as_str()) => {
                for schema in named.values_mut() {
                    close(schema, depth + 1);
                }
            }
            Value::Array(list) if LISTED.contains(&key.as_str()) => {
                for schema in list {
                    close(schema, depth + 1);
                }
            }
            schema if SINGLE.contains(&key.as_str()) => close(schema, depth + 1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_closed_and_bounds_told_in_words() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "minimum": {"type": "integer", "minimum": 1, "description": "How many."},
                "tags": {"type": "array", "minItems": 1, "items": {"type": "object", "maxProperties": 2}}
            },
            "$defs": {"a": {"anyOf": [{"type": "object"}, {"type": "string", "maxLength": 3}]}}
        });
        assert_eq!(
            lower(&schema),
            json!({
                "type": "object",
                "properties": {
                    "minimum": {"type": "integer", "description": "How many.\n\n{\"minimum\":1}"},
                    "tags": {"type": "array", "minItems": 1, "items": {"type": "object",
                        "description": "{\"maxProperties\":2}", "additionalProperties": false}}
                },
                "$defs": {"a": {"anyOf": [{"type": "object", "additionalProperties": false},
                    {"type": "string", "description": "{\"maxLength\":3}"}]}},
                "additionalProperties": false
            })
        );
    }

    #[test]
    fn an_object_that_is_open_on_purpose_stays_open() {
        let schema = json!({"type": "object", "additionalProperties": {"type": "integer"}});
        assert_eq!(lower(&schema), schema);
    }
}

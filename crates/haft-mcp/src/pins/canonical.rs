//! The canonical form of a definition, in which the order of sets makes no difference.
//!
//! Servers build lists of names and defaults from sets, whose order differs from start to start, and list
//! `properties` in any order. Two definitions that differ in nothing else mean the same to a model and to a
//! validator, so they must not count as a change. What JSON Schema gives a meaning by position (`prefixItems`,
//! `const`, the members of `enum` themselves) keeps its order.

use haft_core::canonical_json;
use serde_json::{Map, Value};

/// Schemas nested deeper than this are compared as they are.
const MAX_DEPTH: usize = 128;

/// Arrays of values in which JSON Schema gives no meaning to the order.
const VALUE_SETS: [&str; 4] = ["enum", "required", "type", "examples"];

/// Arrays of schemas in which JSON Schema gives no meaning to the order.
const SCHEMA_SETS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Objects whose members are schemas or, for `dependencies`, lists of names.
const SCHEMA_MAPS: [&str; 7] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependentRequired",
    "dependencies",
];

/// Keywords whose value is a schema, or an array of schemas by position.
const SCHEMAS: [&str; 13] = [
    "items",
    "prefixItems",
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Whether two definitions of a tool are the same apart from the order of sets.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    one == other || definition(one) == definition(other)
}

/// A definition with its sets in one order.
pub(super) fn definition(definition: &Value) -> Value {
    let Value::Object(members) = definition else {
        return definition.clone();
    };
    let members = members.iter().map(|(key, value)| {
        let value = match key.as_str() {
            "inputSchema" | "outputSchema" => schema(value, 0),
            _ => value.clone(),
        };
        (key.clone(), value)
    });
    Value::Object(members.collect())
}

fn schema(value: &Value, depth: usize) -> Value {
    let Value::Object(members) = value else {
        return value.clone();
    };
    if depth > MAX_DEPTH {
        return value.clone();
    }
    let has_labels = has_labels_by_position(members);
    let members = members.iter().map(|(key, value)| {
        let sorted_value = match (key.as_str(), value) {
            ("enum", value) if has_labels => value.clone(),
            ("default", value) => sets_within(value, depth),
            (key, Value::Array(values)) if VALUE_SETS.contains(&key) => sorted(values.clone()),
            (key, Value::Array(schemas)) if SCHEMA_SETS.contains(&key) => {
                sorted(schemas.iter().map(|it| schema(it, depth + 1)).collect())
            }
            (key, Value::Object(map)) if SCHEMA_MAPS.contains(&key) => map_of_schemas(map, depth),
            (key, Value::Array(schemas)) if SCHEMAS.contains(&key) => {
                schemas.iter().map(|it| schema(it, depth + 1)).collect()
            }
            (key, value) if SCHEMAS.contains(&key) => schema(value, depth + 1),
            (_, value) => value.clone(),
        };
        (key.clone(), sorted_value)
    });
    Value::Object(members.collect())
}

/// `properties` and its like. A list of names (`dependentRequired`) is a set.
fn map_of_schemas(map: &Map<String, Value>, depth: usize) -> Value {
    let members = map.iter().map(|(name, value)| {
        let value = match value {
            Value::Array(names) => sorted(names.clone()),
            value => schema(value, depth + 1),
        };
        (name.clone(), value)
    });
    Value::Object(members.collect())
}

/// Whether another array gives the members of `enum` their labels, so that their order has a meaning.
fn has_labels_by_position(schema: &Map<String, Value>) -> bool {
    let is_label = |key: &String| key == "enumNames" || key.starts_with("x-enum");
    schema.keys().any(is_label)
}

/// A default, in which every array may have been a set.
fn sets_within(value: &Value, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return value.clone();
    }
    match value {
        Value::Array(values) => {
            sorted(values.iter().map(|it| sets_within(it, depth + 1)).collect())
        }
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| (key.clone(), sets_within(value, depth + 1)));
            Value::Object(members.collect())
        }
        value => value.clone(),
    }
}

fn sorted(mut values: Vec<Value>) -> Value {
    values.sort_by_cached_key(canonical_json);
    Value::Array(values)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(schema: &Value) -> Value {
        json!({"name": "t", "inputSchema": schema})
    }

    #[test]
    fn the_order_of_sets_is_no_difference() {
        let one = tool(&json!({
            "type": ["object", "null"],
            "required": ["a", "b"],
            "properties": {
                "a": {"enum": ["x", "y", 1], "default": ["p", {"q": [1, 2]}], "examples": [1, 2]},
                "required": {"anyOf": [{"type": "string"}, {"type": ["integer", "null"]}]},
            },
            "dependentRequired": {"a": ["b", "c"]},
            "$defs": {"d": {"items": {"oneOf": [{"const": 1}, {"const": 2}]}}},
        }));
        let other = tool(&json!({
            "$defs": {"d": {"items": {"oneOf": [{"const": 2}, {"const": 1}]}}},
            "dependentRequired": {"a": ["c", "b"]},
            "properties": {
                "required": {"anyOf": [{"type": ["null", "integer"]}, {"type": "string"}]},
                "a": {"examples": [2, 1], "default": [{"q": [2, 1]}, "p"], "enum": [1, "y", "x"]},
            },
            "required": ["b", "a"],
            "type": ["null", "object"],
        }));
        assert!(is_same(&one, &other));
    }

    #[test]
    fn order_with_a_meaning_and_every_other_difference_stays() {
        for (one, other) in [
            (
                json!({"prefixItems": [{}, true]}),
                json!({"prefixItems": [true, {}]}),
            ),
            (json!({"const": [1, 2]}), json!({"const": [2, 1]})),
            (json!({"enum": [[1, 2]]}), json!({"enum": [[2, 1]]})),
            (json!({"required": ["a"]}), json!({"required": ["a", "b"]})),
            (
                json!({"required": ["a", "b"]}),
                json!({"required": ["a", "a"]}),
            ),
            (json!({"default": ["a"]}), json!({"default": ["b"]})),
            (
                json!({"const": {"required": [1, 2]}}),
                json!({"const": {"required": [2, 1]}}),
            ),
            (
                json!({"enum": ["a", "b"], "enumNames": ["A", "B"]}),
                json!({"enum": ["b", "a"], "enumNames": ["A", "B"]}),
            ),
            (json!({"description": "one"}), json!({"description": "two"})),
        ] {
            assert!(!is_same(&tool(&one), &tool(&other)), "{one} {other}");
        }
    }

    #[test]
    fn schemas_past_the_depth_limit_are_compared_as_they_are() {
        let nested = |leaf: Value, depth: usize| {
            let wrap = |inner: Value, _| json!({"items": inner});
            tool(&(0..depth).fold(leaf, wrap))
        };
        let (one, other) = (json!({"required": [1, 2]}), json!({"required": [2, 1]}));
        assert!(is_same(
            &nested(one.clone(), 100),
            &nested(other.clone(), 100)
        ));
        assert!(!is_same(&nested(one, 200), &nested(other, 200)));
    }
}

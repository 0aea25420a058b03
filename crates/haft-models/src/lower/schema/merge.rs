//! Two schemas that both apply, as one.

use serde_json::{Map, Value, json};

/// Words that say nothing about which values are valid.
const ANNOTATIONS: [&str; 7] = [
    "default",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];

/// Adds `more` to `schema`: what is valid must be valid for both. What cannot be said in one place
/// goes into an `allOf`.
pub(super) fn merge(schema: &mut Map<String, Value>, more: Map<String, Value>) {
    let left_over = absorb(schema, more);
    if !left_over.is_empty() {
        let all = schema.entry("allOf").or_insert_with(|| json!([]));
        if let Value::Array(all) = all {
            all.push(Value::Object(left_over));
        }
    }
}

/// Adds as much of `more` to `schema` as can be said in one place, and returns the rest. Of two
/// annotations the later one counts.
pub(super) fn absorb(
    schema: &mut Map<String, Value>,
    more: Map<String, Value>,
) -> Map<String, Value> {
    let mut left_over = Map::new();
    for (keyword, value) in more {
        match schema.get_mut(&keyword) {
            None => {
                schema.insert(keyword, value);
            }
            Some(known) if *known == value => {}
            Some(known) if ANNOTATIONS.contains(&keyword.as_str()) => *known = value,
            Some(known) => match (keyword.as_str(), known, value) {
                ("properties", Value::Object(known), Value::Object(more)) => {
                    merge_properties(known, more);
                }
                ("required", Value::Array(known), Value::Array(more)) => {
                    for name in more {
                        if !known.contains(&name) {
                            known.push(name);
                        }
                    }
                }
                ("allOf", Value::Array(known), Value::Array(more)) => known.extend(more),
                (_, _, value) => {
                    left_over.insert(keyword, value);
                }
            },
        }
    }
    left_over
}

fn merge_properties(known: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, schema) in more {
        match (known.get_mut(&name), schema) {
            (None, schema) => {
                known.insert(name, schema);
            }
            (Some(Value::Object(known)), Value::Object(more)) => merge(known, more),
            (Some(known), schema) => {
                if known.as_bool() == Some(true) {
                    *known = schema;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_contradicts_stays_side_by_side() {
        let mut schema = json!({"type": "object", "title": "a", "properties": {"x": {"minimum": 1}},
            "required": ["x"], "minProperties": 1});
        let more = json!({"title": "b", "properties": {"x": {"minimum": 2}, "y": true},
            "required": ["x", "y"], "minProperties": 2});
        let (Value::Object(known), Value::Object(more)) = (&mut schema, more) else {
            unreachable!()
        };
        merge(known, more);
        assert_eq!(
            schema,
            json!({"type": "object", "title": "b",
                "properties": {"x": {"minimum": 1, "allOf": [{"minimum": 2}]}, "y": true},
                "required": ["x", "y"], "minProperties": 1, "allOf": [{"minProperties": 2}]})
        );
    }
}

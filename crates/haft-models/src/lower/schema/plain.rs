//! Schemas in their plainest form: no booleans for schemas, objects with properties, arrays with
//! items.

use haft_core::{subschemas, subschemas_mut};
use serde_json::{Value, json};

/// `true` and `false` in place of schemas become objects; a list of `items` becomes one schema; a
/// `required` that is no list, as very old schemas have it, goes.
pub(super) fn simplify(schema: &mut Value) {
    if schema.is_null() {
        *schema = json!({});
    }
    if let Some(members) = schema.as_object_mut()
        && members
            .get("required")
            .is_some_and(|required| !required.is_array())
    {
        members.shift_remove("required");
    }
    if let Value::Bool(anything) = schema {
        *schema = if *anything {
            json!({})
        } else {
            json!({"not": {}})
        };
    }
    // The older drafts' tuples: which one counts is decided by the validator, not by the provider.
    if let Some(items @ Value::Array(_)) = schema.get_mut("items") {
        let variants = items.take();
        let is_empty = variants.as_array().is_some_and(Vec::is_empty);
        *items = if is_empty {
            json!({})
        } else {
            json!({"anyOf": variants})
        };
    }
    subschemas_mut(schema, |keyword, sub| {
        let may_be_boolean = matches!(
            keyword,
            "additionalItems"
                | "additionalProperties"
                | "unevaluatedItems"
                | "unevaluatedProperties"
        );
        let are_names = keyword == "dependencies" && sub.is_array();
        if !(may_be_boolean && sub.is_boolean() || are_names) {
            simplify(sub);
        }
    });
}

/// Every object gets `properties`, every array `items`.
pub(super) fn complete(schema: &mut Value) {
    if let Some(members) = schema.as_object_mut() {
        if names_type(members.get("type"), "object") && !members.contains_key("properties") {
            members.insert("properties".into(), json!({}));
        }
        if names_type(members.get("type"), "array") && !members.contains_key("items") {
            members.insert("items".into(), json!({}));
        }
    }
    subschemas_mut(schema, |_, sub| complete(sub));
}

/// Whether `type` is, or contains, this one.
pub(super) fn names_type(types: Option<&Value>, wanted: &str) -> bool {
    match types {
        Some(Value::String(name)) => name == wanted,
        Some(Value::Array(names)) => names.iter().any(|name| name == wanted),
        _ => false,
    }
}

/// Whether `null` is valid; doubtful cases are not.
pub(super) fn admits_null(schema: &Value) -> bool {
    if names_type(schema.get("type"), "null") {
        return true;
    }
    let mut by_variant = false;
    subschemas(schema, |keyword, sub| {
        by_variant |= matches!(keyword, "anyOf" | "oneOf") && admits_null(sub);
    });
    let by_value = |keyword: &str| schema.get(keyword).is_some_and(Value::is_null);
    let listed = schema.get("enum").and_then(Value::as_array);
    let by_list = schema.get("type").is_none()
        && (by_value("const") || listed.is_some_and(|list| list.contains(&Value::Null)));
    by_variant || by_list
}

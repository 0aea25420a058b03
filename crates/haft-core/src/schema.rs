//! JSON Schemas as data: bounds, local references, the authors' shorthand.
//!
//! Nothing here compiles a schema; that is the validator's work. What is checked here must hold
//! for every definition, also for those whose validator is compiled late.

use serde_json::{Map, Value, json};

use crate::cut::cut;
use crate::definition_error::DefinitionError;

/// Bounds on a schema. What exceeds one is refused: a hostile definition must not cost more than
/// the refusal.
pub(crate) const MAX_SCHEMA_BYTES: usize = 256 * 1024;
const MAX_SCHEMA_DEPTH: usize = 64;
const MAX_VALUE_DEPTH: usize = 128;
const MAX_SUBSCHEMAS: usize = 5_000;

/// Keywords whose value is a schema or a list of schemas.
const SCHEMAS: [&str; 16] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords whose value holds schemas by name.
const NAMED_SCHEMAS: [&str; 6] = [
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// Calls `visit` with each direct subschema and the keyword that holds it.
pub fn subschemas<'s>(schema: &'s Value, mut visit: impl FnMut(&'s str, &'s Value)) {
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        let mut visit = |sub| visit(keyword.as_str(), sub);
        match value {
            Value::Object(named) if NAMED_SCHEMAS.contains(&keyword.as_str()) => {
                named.values().for_each(visit);
            }
            _ if !SCHEMAS.contains(&keyword.as_str()) => {}
            Value::Array(items) => items.iter().for_each(visit),
            single => visit(single),
        }
    }
}

/// [`subschemas`], to change them.
///
/// ```
/// use serde_json::json;
/// let mut schema = json!({"items": {"title": "x"}, "const": {"title": "data"}});
/// haft_core::subschemas_mut(&mut schema, |_, sub| *sub = json!({}));
/// assert_eq!(schema, json!({"items": {}, "const": {"title": "data"}}));
/// ```
pub fn subschemas_mut(schema: &mut Value, mut visit: impl FnMut(&str, &mut Value)) {
    for (keyword, value) in schema.as_object_mut().into_iter().flatten() {
        let mut visit = |sub: &mut Value| visit(keyword, sub);
        match value {
            Value::Object(named) if NAMED_SCHEMAS.contains(&keyword.as_str()) => {
                named.values_mut().for_each(visit);
            }
            _ if !SCHEMAS.contains(&keyword.as_str()) => {}
            Value::Array(items) => items.iter_mut().for_each(visit),
            single => visit(single),
        }
    }
}

/// Refuses a parameter schema that no definition may carry: for those who want to know before they
/// build one.
///
/// ```
/// use serde_json::json;
/// assert!(haft_core::check_parameters("ping", &json!({"type": "object"})).is_ok());
/// assert!(haft_core::check_parameters("ping", &json!({"type": "string"})).is_err());
/// ```
pub fn check_parameters(tool: &str, schema: &Value) -> Result<(), DefinitionError> {
    check(tool, schema)?;
    if schema.get("type").and_then(Value::as_str) == Some("object") {
        Ok(())
    } else {
        Err(invalid(
            tool,
            "its root must be an object: set `\"type\": \"object\"`",
        ))
    }
}

/// Refuses a schema that is too large, too deep or refers to something outside itself.
pub(crate) fn check(tool: &str, schema: &Value) -> Result<(), DefinitionError> {
    if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
        return Err(invalid(tool, "a schema is an object or a boolean"));
    }
    if value_depth_exceeds(schema, MAX_VALUE_DEPTH) {
        return Err(invalid(tool, "it is nested deeper than 128"));
    }
    let bytes = schema.to_string().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Err(invalid(
            tool,
            &format!("it has {bytes} bytes, more than {MAX_SCHEMA_BYTES}"),
        ));
    }
    check_references(tool, schema)
}

fn check_references(tool: &str, schema: &Value) -> Result<(), DefinitionError> {
    let mut embedded = Vec::new();
    let mut references = Vec::new();
    let mut open = vec![(schema, 1)];
    let mut count = 0;
    while let Some((schema, depth)) = open.pop() {
        count += 1;
        if depth > MAX_SCHEMA_DEPTH {
            return Err(invalid(tool, "its subschemas are nested deeper than 64"));
        }
        if count > MAX_SUBSCHEMAS {
            return Err(invalid(tool, "it has more than 5000 subschemas"));
        }
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            match schema.get(keyword) {
                None => {}
                Some(Value::String(target)) => references.push(target.as_str()),
                Some(_) => return Err(invalid(tool, &format!("`{keyword}` must be a string"))),
            }
        }
        if let Some(Value::String(id)) = schema.get("$id") {
            embedded.push(id.trim_end_matches('#'));
        }
        subschemas(schema, |_, sub| open.push((sub, depth + 1)));
    }
    let is_local = |target: &str| {
        let resource = target.split('#').next().unwrap_or_default();
        resource.is_empty() || embedded.contains(&resource)
    };
    match references.into_iter().find(|target| !is_local(target)) {
        None => Ok(()),
        Some(target) => Err(DefinitionError::RemoteRef {
            tool: tool.to_owned(),
            reference: cut(target),
        }),
    }
}

fn invalid(tool: &str, reason: &str) -> DefinitionError {
    DefinitionError::InvalidSchema {
        tool: tool.to_owned(),
        reason: reason.to_owned(),
    }
}

/// Whether a value is nested deeper than `limit`, found without recursion.
///
/// ```
/// use haft_core::value_depth_exceeds;
/// assert!(!value_depth_exceeds(&serde_json::json!([[1]]), 2));
/// assert!(value_depth_exceeds(&serde_json::json!([[[1]]]), 2));
/// ```
pub fn value_depth_exceeds(value: &Value, limit: usize) -> bool {
    let mut open = vec![(value, 0)];
    while let Some((value, depth)) = open.pop() {
        if depth > limit {
            return true;
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => open.extend(members.values().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    false
}

/// Rewrites the shorthand of properties written directly under `parameters` into a proper object
/// schema. `None` if it is not that shorthand.
pub(crate) fn expand_shorthand(parameters: &Value) -> Option<Value> {
    let members = parameters.as_object()?;
    if members.is_empty() || members.contains_key("type") || members.contains_key("properties") {
        return None;
    }
    let is_property = |value: &Value| value.get("type").is_some();
    let properties: Map<_, _> = members
        .iter()
        .filter(|(key, _)| *key != "required")
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if properties.is_empty() || !properties.values().all(is_property) {
        return None;
    }
    let mut schema = Map::new();
    schema.insert("type".into(), json!("object"));
    schema.insert("properties".into(), Value::Object(properties));
    if let Some(required) = members.get("required") {
        schema.insert("required".into(), required.clone());
    }
    Some(Value::Object(schema))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_reference_is_refused_wherever_it_stands() {
        for schema in [
            json!({"type": "object", "$ref": "https://example.com/a.json"}),
            json!({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}),
            json!({"type": "object", "items": [{"$ref": "other.json#/x"}]}),
            json!({"type": "object", "$defs": {"a": {"anyOf": [{"$dynamicRef": "b.json"}]}}}),
        ] {
            assert!(
                matches!(
                    check_parameters("t", &schema),
                    Err(DefinitionError::RemoteRef { .. })
                ),
                "{schema}"
            );
        }
    }

    #[test]
    fn local_references_and_data_that_looks_like_one_pass() {
        for schema in [
            json!({"type": "object", "properties": {"$ref": {"type": "string"}}}),
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}}),
            json!({"type": "object", "properties": {"a": {"const": {"$ref": "https://x"}}}}),
            json!({"type": "object", "$ref": "item", "$defs": {"i": {"$id": "item"}}}),
        ] {
            assert_eq!(check_parameters("t", &schema), Ok(()), "{schema}");
        }
    }

    #[test]
    fn the_root_must_be_an_object() {
        for schema in [
            json!({}),
            json!(true),
            json!([]),
            json!("object"),
            json!({"type": "string"}),
            json!({"type": ["object", "null"]}),
        ] {
            assert!(check_parameters("t", &schema).is_err(), "{schema}");
        }
    }

    #[test]
    fn a_schema_past_its_bounds_is_refused() {
        let mut deep = json!({"type": "object"});
        for _ in 0..70 {
            deep = json!({"type": "object", "properties": {"a": deep}});
        }
        assert!(check_parameters("t", &deep).is_err());
        let mut very_deep = json!(1);
        for _ in 0..300 {
            very_deep = Value::Array(vec![very_deep]);
        }
        let long_enum = json!({"type": "object", "enum": [very_deep]});
        assert!(check_parameters("t", &long_enum).is_err());
        let wide: Map<_, _> = (0..6_000).map(|n| (n.to_string(), json!({}))).collect();
        assert!(check_parameters("t", &json!({"type": "object", "properties": wide})).is_err());
        let large = json!({"type": "object", "description": "x".repeat(300_000)});
        assert!(check_parameters("t", &large).is_err());
    }

    #[test]
    fn properties_written_directly_under_parameters_become_a_schema() {
        assert_eq!(
            expand_shorthand(&json!({"city": {"type": "string"}, "required": ["city"]})),
            Some(json!({
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"]
            }))
        );
        assert_eq!(expand_shorthand(&json!({"type": "object"})), None);
        assert_eq!(expand_shorthand(&json!({"city": "string"})), None);
        assert_eq!(expand_shorthand(&json!({"required": ["a"]})), None);
    }
}

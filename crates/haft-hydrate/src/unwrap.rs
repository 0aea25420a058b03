//! Arguments that arrived inside something: the call object, a one-element list.

use serde_json::{Map, Value};

use crate::in_place::in_place;
use crate::parse::parse_strict;

/// Members under which models and providers put the arguments of a call.
const WRAPPERS: [&str; 7] = [
    "arguments",
    "args",
    "parameters",
    "params",
    "input",
    "tool_input",
    "kwargs",
];

/// Members under which they put the tool's name beside them.
const NAMES: [&str; 3] = ["name", "tool", "tool_name"];

/// The arguments inside a wrapper, if that is the only reading: the wrapper's member is no property
/// of the tool, everything else in it is said by the call already, and the name is this tool's.
pub(crate) fn unwrapped(value: &Value, schema: &Value, tool: &str) -> Option<Value> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return None;
    }
    match value {
        Value::Array(items) => match items.as_slice() {
            [Value::Object(only)] => Some(Value::Object(only.clone())),
            _ => None,
        },
        Value::Object(members) => from_object(members, schema, tool),
        _ => None,
    }
}

fn from_object(members: &Map<String, Value>, schema: &Value, tool: &str) -> Option<Value> {
    let is_property = |name: &str| may_declare(schema, schema, name, 0);
    let mut inner = None;
    let mut said_beside = Vec::new();
    for (name, value) in members {
        let is_wrapper = WRAPPERS.contains(&name.as_str()) || name == tool;
        if is_wrapper && inner.is_none() && !is_property(name) {
            inner = Some(object_of(value)?);
        } else if says_whose_call_it_is(name, value, tool) {
            said_beside.push(name);
        } else {
            return None;
        }
    }
    let inner = inner?;
    // A property of that name which the inner object lacks may be what was meant.
    let loses_one = said_beside
        .into_iter()
        .any(|name| is_property(name) && !inner.contains_key(name));
    (!loses_one).then_some(Value::Object(inner))
}

/// Whether the schema may know a member of this name; rather yes than no.
fn may_declare(root: &Value, schema: &Value, name: &str, depth: usize) -> bool {
    if depth > 16 {
        return true;
    }
    let declared = schema
        .get("properties")
        .is_some_and(|properties| properties.get(name).is_some());
    let by_pattern = schema.get("patternProperties").is_some();
    let by_rest = schema
        .get("additionalProperties")
        .is_some_and(Value::is_object);
    declared
        || by_pattern
        || by_rest
        || in_place(root, schema)
            .into_iter()
            .any(|part| may_declare(root, part, name, depth + 1))
}

fn says_whose_call_it_is(name: &str, value: &Value, tool: &str) -> bool {
    (NAMES.contains(&name) && *value == tool)
        || (name == "type" && (*value == "function" || *value == "tool_use"))
}

fn object_of(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(members) => Some(members.clone()),
        Value::String(text) => match parse_strict(text.trim()) {
            Ok(Value::Object(members)) => Some(members),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
    }

    #[test]
    fn the_wrappers_of_a_call_are_taken_off() {
        let oslo = json!({"city": "Oslo"});
        for wrapped in [
            json!([oslo]),
            json!({"arguments": oslo}),
            json!({"parameters": oslo}),
            json!({"name": "weather", "arguments": oslo}),
            json!({"type": "function", "name": "weather", "arguments": "{\"city\": \"Oslo\"}"}),
            json!({"weather": oslo}),
        ] {
            assert_eq!(
                unwrapped(&wrapped, &schema(), "weather"),
                Some(oslo.clone()),
                "{wrapped}"
            );
        }
    }

    #[test]
    fn what_would_be_lost_keeps_the_wrapper_on() {
        let oslo = json!({"city": "Oslo"});
        for kept in [
            json!([oslo, oslo]),
            json!([]),
            json!({"arguments": oslo, "units": "c"}),
            json!({"name": "another_tool", "arguments": oslo}),
            json!({"arguments": oslo, "parameters": oslo}),
            json!({"arguments": [oslo]}),
            json!({"wrapped": oslo}),
        ] {
            assert_eq!(unwrapped(&kept, &schema(), "weather"), None, "{kept}");
        }
    }

    #[test]
    fn a_property_of_the_wrappers_name_keeps_it_on() {
        let schema = json!({"type": "object", "properties": {"arguments": {}, "city": {}}});
        assert_eq!(
            unwrapped(&json!({"arguments": {"city": 1}}), &schema, "t"),
            None
        );
        let named = json!({"type": "object", "properties": {"name": {}, "city": {}}});
        let call = json!({"name": "t", "arguments": {"city": 1}});
        assert_eq!(unwrapped(&call, &named, "t"), None);
    }
}

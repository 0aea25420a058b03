//! Arguments that a server wants mirrored as headers: whether what it says about them is sound.
//!
//! rmcp does the mirroring, and leaves out tools whose `x-mcp-header` is not allowed without telling
//! anybody but the log. This check comes before and tells.

use std::collections::HashSet;

use haft_core::cut;
use serde_json::Value;

const KEY: &str = "x-mcp-header";

/// Where a schema holds values or other words, not schemas.
const NOT_SCHEMAS: [&str; 5] = ["const", "default", "enum", "examples", "required"];

/// Checks every `x-mcp-header` of a tool's schema.
pub(crate) fn check_header_annotations(schema: &Value) -> Result<(), String> {
    let mut names = HashSet::new();
    walk(schema, true, &mut names)
}

/// `is_reachable`: whether only `properties` lie between here and the root.
fn walk(schema: &Value, is_reachable: bool, names: &mut HashSet<String>) -> Result<(), String> {
    match schema {
        Value::Object(object) => {
            if let Some(header) = object.get(KEY) {
                check(header, object.get("type"), is_reachable, names)?;
            }
            for (key, value) in object {
                if key == "properties" {
                    let properties = value
                        .as_object()
                        .into_iter()
                        .flat_map(serde_json::Map::values);
                    properties
                        .into_iter()
                        .try_for_each(|property| walk(property, is_reachable, names))?;
                } else if !NOT_SCHEMAS.contains(&key.as_str()) && key != KEY {
                    walk(value, false, names)?;
                }
            }
            Ok(())
        }
        Value::Array(schemas) => schemas
            .iter()
            .try_for_each(|schema| walk(schema, false, names)),
        _ => Ok(()),
    }
}

fn check(
    header: &Value,
    kind: Option<&Value>,
    is_reachable: bool,
    names: &mut HashSet<String>,
) -> Result<(), String> {
    let told = |problem: &str| format!("`{KEY}` {}: {problem}", cut(&header.to_string()));
    let name = header.as_str().ok_or_else(|| told("it is no text"))?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(told("it is no name of a header"));
    }
    if !is_reachable {
        return Err(told("it stands where no argument can be found"));
    }
    if !matches!(
        kind.and_then(Value::as_str),
        Some("string" | "integer" | "boolean")
    ) {
        return Err(told(
            "only a string, an integer or a boolean can be a header",
        ));
    }
    if !names.insert(name.to_ascii_lowercase()) {
        return Err(told("it occurs twice"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn checked(properties: &Value) -> Result<(), String> {
        check_header_annotations(&json!({"type": "object", "properties": properties}))
    }

    #[test]
    fn sound_annotations_pass() {
        let nested = json!({"type": "object", "properties": {"b": {"type": "integer", KEY: "B"}}});
        assert_eq!(
            checked(&json!({"a": {"type": "string", KEY: "Region"}, "n": nested})),
            Ok(())
        );
        // A property of that name is none of it.
        assert_eq!(
            checked(&json!({"x-mcp-header": {"type": "string"}, "y": {"enum": [{KEY: ""}]}})),
            Ok(())
        );
    }

    #[test]
    fn unsound_annotations_are_told() {
        for (property, problem) in [
            (
                json!({"type": "string", KEY: ""}),
                "it is no name of a header",
            ),
            (
                json!({"type": "string", KEY: "a b"}),
                "it is no name of a header",
            ),
            (json!({"type": "string", KEY: 1}), "it is no text"),
            (
                json!({"type": "number", KEY: "A"}),
                "only a string, an integer or a boolean can be a header",
            ),
            (
                json!({KEY: "A"}),
                "only a string, an integer or a boolean can be a header",
            ),
            (
                json!({"type": "array", "items": {"type": "string", KEY: "A"}}),
                "it stands where no argument can be found",
            ),
            (
                json!({"anyOf": [{"type": "string", KEY: "A"}]}),
                "it stands where no argument can be found",
            ),
        ] {
            let told = checked(&json!({ "p": property })).unwrap_err();
            assert!(told.ends_with(problem), "{told}");
        }
        let twice = json!({"a": {"type": "string", KEY: "X"}, "b": {"type": "string", KEY: "x"}});
        assert!(checked(&twice).unwrap_err().ends_with("it occurs twice"));
    }
}

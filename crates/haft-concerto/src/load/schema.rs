//! Schemas of the older toolchain, which name types of Concerto where JSON Schema has its own.

use serde_json::{Map, Value as Json, json};

use crate::ir::Module;

/// How deep a type may be nested; what is deeper is any object.
const MAX_NESTING: usize = 16;

/// Makes the schemas of a program standard ones.
pub(super) fn normalise(ir: &mut Module) {
    for schema in &mut ir.schemas {
        standard(&mut schema.json_schema, 0);
    }
    for tool in &mut ir.tools {
        for schema in &mut tool.tool_schemas {
            standard(&mut schema.parameters, 0);
        }
    }
}

fn standard(schema: &mut Json, depth: usize) {
    let Json::Object(members) = schema else {
        return;
    };
    if depth > MAX_NESTING {
        return;
    }
    if let Some(Json::Object(properties)) = members.get_mut("properties") {
        properties
            .values_mut()
            .for_each(|it| standard(it, depth + 1));
    }
    if let Some(items) = members.get_mut("items") {
        standard(items, depth + 1);
    }
    if let Some(Json::String(name)) = members.get("type")
        && !is_standard(name)
        && let Json::Object(known) = of_type(name, depth)
    {
        members.remove("type");
        let old = std::mem::take(members);
        *members = known;
        // What stood beside the type stays: a description, an enum.
        members.extend(old);
    }
}

fn is_standard(name: &str) -> bool {
    let standard = [
        "object", "array", "string", "integer", "number", "boolean", "null",
    ];
    standard.contains(&name)
}

/// The schema of a type as it is written: `Array<Int>`, `"a" | "b"`.
fn of_type(text: &str, depth: usize) -> Json {
    let text = text.trim();
    if depth > MAX_NESTING {
        return json!({"type": "object"});
    }
    if text.starts_with('"') {
        let options: Vec<&str> = text
            .split('|')
            .map(|option| option.trim().trim_matches('"'))
            .collect();
        return json!({"type": "string", "enum": options});
    }
    let (name, inner) = match text.split_once('<') {
        Some((name, rest)) => (name.trim(), rest.strip_suffix('>')),
        None => (text, None),
    };
    match (name, inner) {
        ("Int", _) => json!({"type": "integer"}),
        ("Float", _) => json!({"type": "number"}),
        ("String", _) => json!({"type": "string"}),
        ("Bool", _) => json!({"type": "boolean"}),
        ("Nil", _) => json!({"type": "null"}),
        ("Any", _) => Json::Object(Map::new()),
        ("Array", Some(inner)) => json!({"type": "array", "items": of_type(inner, depth + 1)}),
        ("Array", None) => json!({"type": "array"}),
        ("Option", Some(inner)) => {
            json!({"anyOf": [of_type(inner, depth + 1), {"type": "null"}]})
        }
        _ => json!({"type": "object"}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_become_schemas_and_the_rest_stays() {
        let mut schema = json!({
            "type": "object",
            "properties": {
                "n": {"type": "Int", "description": "how many"},
                "u": {"type": "\"low\" | \"high\""},
                "xs": {"type": "Array<Array<Float>>"},
                "o": {"type": "Option<String>"},
                "m": {"type": "Map<String, Int>"},
                "inner": {"type": "object", "properties": {"b": {"type": "Bool"}}},
                "list": {"type": "array", "items": {"type": "String"}},
            },
            "required": ["n"],
        });
        standard(&mut schema, 0);
        let expected = json!({
            "type": "object",
            "properties": {
                "n": {"type": "integer", "description": "how many"},
                "u": {"type": "string", "enum": ["low", "high"]},
                "xs": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
                "o": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "m": {"type": "object"},
                "inner": {"type": "object", "properties": {"b": {"type": "boolean"}}},
                "list": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["n"],
        });
        assert_eq!(schema, expected);
    }

    #[test]
    fn types_without_end_do_not_break_it() {
        let deep = "Array<".repeat(10_000);
        let mut schema = json!({"type": deep});
        standard(&mut schema, 0);
        assert_eq!(schema, json!({"type": "array"}));
        let deep = format!("{}Int{}", "Array<".repeat(10_000), ">".repeat(10_000));
        let mut schema = json!({"type": deep});
        standard(&mut schema, 0);
        assert_eq!(schema["type"], "array");
    }
}

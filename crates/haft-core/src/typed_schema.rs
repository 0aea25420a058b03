//! The schema of a Rust type, in the normal form that definitions carry.

use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value, json};

use crate::prose::doc_text;
use crate::schema::subschemas_mut;

/// The normal-form schema of `T`: no `$schema`, no generated title, definitions inlined unless they
/// are recursive, structs closed, `Option` nullable without a default, descriptions joined to
/// paragraphs, members in source order.
///
/// ```
/// use haft_core::schema_of;
///
/// #[derive(schemars::JsonSchema)]
/// struct Search {
///     /// What to look for
///     query: String,
///     limit: Option<u8>,
/// }
/// assert_eq!(
///     schema_of::<Search>(),
///     serde_json::json!({
///         "type": "object",
///         "properties": {
///             "query": {"type": "string", "description": "What to look for"},
///             "limit": {"type": ["integer", "null"], "format": "uint8", "minimum": 0, "maximum": 255}
///         },
///         "required": ["query"],
///         "additionalProperties": false
///     })
/// );
/// ```
pub fn schema_of<T: JsonSchema>() -> Value {
    normal_form::<T>(Contract::Deserialize)
}

/// [`schema_of`] for what `T` serialises to rather than what it is read from: the schema of a
/// result.
///
/// ```
/// use haft_core::output_schema_of;
///
/// #[derive(schemars::JsonSchema, serde::Serialize)]
/// struct Weather {
///     degrees: i8,
///     wind: Option<String>,
/// }
/// // Written always, if only as `null`; read, it could be left out.
/// assert_eq!(output_schema_of::<Weather>()["required"], serde_json::json!(["degrees", "wind"]));
/// ```
pub fn output_schema_of<T: JsonSchema>() -> Value {
    normal_form::<T>(Contract::Serialize)
}

fn normal_form<T: JsonSchema>(contract: Contract) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        settings.contract = contract;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    if let Value::Object(root) = &mut schema
        && root.get("title").and_then(Value::as_str) == Some(&T::schema_name())
    {
        root.shift_remove("title");
    }
    normalise(&mut schema, Closing::Allowed);
    schema
}

/// Whether an object schema may be closed where it stands, or only together with its parent.
#[derive(Clone, Copy, PartialEq)]
enum Closing {
    Allowed,
    ByParent,
}

fn normalise(schema: &mut Value, closing: Closing) {
    let Value::Object(members) = schema else {
        return;
    };
    admit_null_in_place(members);
    if members.get("default") == Some(&Value::Null) {
        members.shift_remove("default");
    }
    if let Some(Value::String(description)) = members.get_mut("description") {
        *description = doc_text(description);
    }
    let shares_its_object = close(members, closing);
    subschemas_mut(schema, |keyword, sub| {
        let in_place = matches!(
            keyword,
            "allOf" | "anyOf" | "oneOf" | "if" | "then" | "else" | "not"
        );
        normalise(
            sub,
            if in_place && (shares_its_object || matches!(keyword, "allOf" | "not" | "if")) {
                Closing::ByParent
            } else {
                Closing::Allowed
            },
        );
    });
}

/// Closes a struct's schema. True if parts of the object are described by schemas in place, which
/// then must not be closed on their own.
fn close(members: &mut Map<String, Value>, closing: Closing) -> bool {
    let is_struct = members.contains_key("properties");
    let composed = ["allOf", "anyOf", "oneOf", "$ref"]
        .iter()
        .any(|keyword| members.contains_key(*keyword));
    let shares = composed && (is_struct || closing == Closing::ByParent);
    let open = !members.contains_key("additionalProperties")
        && !members.contains_key("unevaluatedProperties");
    if is_struct && open && closing == Closing::Allowed {
        let keyword = if composed {
            "unevaluatedProperties"
        } else {
            "additionalProperties"
        };
        members.insert(keyword.into(), json!(false));
    }
    shares
}

/// `anyOf [T, null]` as T with `null` admitted, where T has one plain type.
fn admit_null_in_place(members: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = members.get("anyOf") else {
        return;
    };
    let [Value::Object(inner), null] = branches.as_slice() else {
        return;
    };
    let Some(Value::String(kind)) = inner.get("type") else {
        return;
    };
    if *null != json!({"type": "null"}) || inner.contains_key("const") {
        return;
    }
    let mut merged = inner.clone();
    merged.insert("type".into(), json!([kind, "null"]));
    if let Some(Value::Array(values)) = merged.get_mut("enum") {
        values.push(Value::Null);
    }
    // What the field says goes before what its type says.
    for (keyword, value) in members.iter().filter(|(keyword, _)| *keyword != "anyOf") {
        merged.insert(keyword.clone(), value.clone());
    }
    *members = merged;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};
    use std::collections::BTreeMap;

    #[derive(JsonSchema, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Unit {
        Celsius,
        Fahrenheit,
    }

    fn parameters_of<T: JsonSchema>() -> Value {
        schema_of::<T>()["properties"].clone()
    }

    #[test]
    fn the_type_mapping_of_concerto_holds() {
        #[derive(JsonSchema)]
        #[allow(dead_code)]
        struct All {
            int: i64,
            float: f64,
            string: String,
            bool: bool,
            array: Vec<i64>,
            map: BTreeMap<String, bool>,
            option: Option<String>,
        }
        let schema = schema_of::<All>();
        let kinds: Vec<_> = schema["properties"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, schema)| (name.as_str(), schema["type"].clone()))
            .collect();
        assert_eq!(
            kinds,
            [
                ("int", json!("integer")),
                ("float", json!("number")),
                ("string", json!("string")),
                ("bool", json!("boolean")),
                ("array", json!("array")),
                ("map", json!("object")),
                ("option", json!(["string", "null"])),
            ]
        );
        assert_eq!(schema["properties"]["array"]["items"]["type"], "integer");
        assert_eq!(
            schema["required"],
            json!(["int", "float", "string", "bool", "array", "map"])
        );
    }

    #[test]
    fn an_optional_enum_admits_null_and_has_no_default() {
        #[derive(JsonSchema, Deserialize)]
        #[allow(dead_code)]
        struct Ask {
            /// Unit of
            /// the answer
            #[serde(default)]
            unit: Option<Unit>,
        }
        assert_eq!(
            parameters_of::<Ask>(),
            json!({"unit": {
                "type": ["string", "null"],
                "enum": ["celsius", "fahrenheit", null],
                "description": "Unit of the answer"
            }})
        );
    }

    #[test]
    fn nested_structs_are_inlined_and_closed() {
        #[derive(JsonSchema)]
        #[allow(dead_code)]
        struct Inner {
            a: String,
        }
        #[derive(JsonSchema)]
        #[allow(dead_code)]
        struct Outer {
            inner: Inner,
            many: Vec<Inner>,
        }
        let inner = json!({
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "required": ["a"],
            "additionalProperties": false
        });
        assert_eq!(
            schema_of::<Outer>(),
            json!({
                "type": "object",
                "properties": {"inner": inner, "many": {"type": "array", "items": inner}},
                "required": ["inner", "many"],
                "additionalProperties": false
            })
        );
    }

    #[test]
    fn a_recursive_type_keeps_a_local_reference() {
        #[derive(JsonSchema)]
        #[allow(dead_code)]
        struct Node {
            children: Vec<Node>,
        }
        #[derive(JsonSchema)]
        #[allow(dead_code)]
        struct Tree {
            root: Node,
        }
        let text = schema_of::<Tree>().to_string();
        assert!(text.contains(r##""$ref":"#/$defs/Node""##), "{text}");
    }

    #[test]
    fn composed_objects_are_closed_as_a_whole() {
        #[derive(JsonSchema, Deserialize)]
        #[serde(tag = "kind", rename_all = "lowercase")]
        #[allow(dead_code)]
        enum Shape {
            Circle { radius: f64 },
            Square { side: f64 },
        }
        #[derive(JsonSchema, Deserialize)]
        #[allow(dead_code)]
        struct Draw {
            name: String,
            #[serde(flatten)]
            shape: Shape,
        }
        #[derive(JsonSchema, Deserialize)]
        #[allow(dead_code)]
        struct Nested {
            shape: Shape,
        }
        let flat = schema_of::<Draw>();
        assert_eq!(flat["unevaluatedProperties"], json!(false));
        assert_eq!(flat["oneOf"][0].get("additionalProperties"), None);
        let nested = schema_of::<Nested>();
        assert_eq!(
            nested["properties"]["shape"]["oneOf"][0]["additionalProperties"],
            json!(false)
        );
    }

    #[test]
    fn a_title_that_the_author_wrote_stays() {
        #[derive(JsonSchema)]
        #[schemars(title = "A search")]
        #[allow(dead_code)]
        struct Search {
            #[schemars(title = "The query")]
            query: String,
        }
        let schema = schema_of::<Search>();
        assert_eq!(schema["title"], "A search");
        assert_eq!(schema["properties"]["query"]["title"], "The query");
    }
}

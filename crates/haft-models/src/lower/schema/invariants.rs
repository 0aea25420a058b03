//! What holds for every schema that is lowered.

use std::path::PathBuf;

use super::*;

/// Walks all subschemas.
fn each(schema: &Value, check: &mut dyn FnMut(&Value)) {
    check(schema);
    haft_core::subschemas(schema, |_, sub| each(sub, check));
}

pub(super) fn check_keys(schema: &Value) {
    each(schema, &mut |schema| {
        for key in schema["properties"]
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
        {
            let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
            assert!(
                (1..=64).contains(&key.len()) && key.bytes().all(legal),
                "{key}"
            );
        }
    });
}

fn check_invariants(result: &Lowered, profile: Profile) {
    let root = &result.schema;
    assert_eq!(root["type"], "object");
    assert!(root["properties"].is_object());
    if profile != Profile::Gemini {
        for keyword in ["oneOf", "anyOf", "allOf", "enum", "const", "not"] {
            assert!(root.get(keyword).is_none(), "{keyword}: {root}");
        }
    }
    each(root, &mut |schema| {
        for keyword in ["$ref", "$schema", "$id", "$comment", "$defs", "definitions"] {
            assert!(schema.get(keyword).is_none(), "{keyword}: {schema}");
        }
        let open = matches!(
            profile,
            Profile::Openai | Profile::OpenaiStrict | Profile::Generic
        );
        if open && plain::names_type(schema.get("type"), "object") {
            assert!(schema["properties"].is_object(), "{schema}");
        }
        if open && plain::names_type(schema.get("type"), "array") {
            assert!(schema["items"].is_object(), "{schema}");
        }
        if result.strict && schema["type"] == "object" {
            assert_eq!(schema["additionalProperties"], false);
            let names: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
            assert_eq!(schema["required"], json!(names));
        }
        if profile == Profile::GeminiOpenapi {
            assert!(schema.get("type").is_none_or(Value::is_string), "{schema}");
            for keyword in [
                "additionalProperties",
                "propertyNames",
                "const",
                "exclusiveMinimum",
                "oneOf",
                "allOf",
            ] {
                assert!(schema.get(keyword).is_none(), "{keyword}: {schema}");
            }
            let listed = schema.get("enum").and_then(Value::as_array);
            assert!(
                listed.into_iter().flatten().all(Value::is_string),
                "{schema}"
            );
        }
    });
    if profile == Profile::Anthropic {
        check_keys(root);
    }
    let again = lower(root, profile).unwrap();
    assert_eq!(&again.schema, root, "what is lowered stays as it is");
}

/// The shared data beside the workspace, or where the variable says.
fn corpus() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("HAFT_SHARED").map_or(beside, PathBuf::from);
    Some(folder.join("data/mcp-tooldefs")).filter(|folder| folder.is_dir())
}

#[test]
#[allow(clippy::print_stderr, reason = "says why nothing was tested")]
fn every_tool_of_the_corpus_is_lowered_to_every_profile() {
    let Some(folder) = corpus() else {
        return eprintln!("skipped: no corpus of tools; set `HAFT_SHARED` to where `data` is");
    };
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let tools: Vec<Value> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for tool in tools {
            count += 1;
            for profile in Profile::ALL {
                let result = lower(&tool["inputSchema"], profile)
                    .unwrap_or_else(|reason| panic!("{}: {reason}", tool["name"]));
                check_invariants(&result, profile);
            }
        }
    }
    assert!(count >= 116, "{count}");
}

mod any_schema {
    use super::*;
    use proptest::prelude::*;

    fn name() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("a"),
            Just("b"),
            Just("a b"),
            Just("type"),
            Just("$ref"),
            Just("x-y")
        ]
        .prop_map(String::from)
    }

    /// Schemas, and things where schemas should be.
    fn schema() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!({"type": "string", "format": "uri"})),
            Just(json!({"type": ["integer", "null"]})),
            Just(json!({"type": "object"})),
            Just(json!({"type": "array"})),
            Just(json!({"enum": [1, "a", null]})),
            Just(json!({"const": {"$ref": "#/x"}})),
            Just(json!({"$ref": "#"})),
            Just(json!({"$ref": "#/$defs/a", "description": "d"})),
            Just(json!({"$ref": "#/properties/b"})),
            Just(json!({"$ref": 7})),
            Just(json!({"type": 7, "required": "a", "properties": []})),
            any::<bool>().prop_map(Value::Bool),
            Just(json!({})),
            Just(json!(null)),
        ];
        leaf.prop_recursive(4, 40, 4, |inner| {
            let named = proptest::collection::btree_map(name(), inner.clone(), 0..4)
                .prop_map(|map| json!(map))
                .boxed();
            let list = proptest::collection::vec(inner.clone(), 0..4).prop_map(|list| json!(list));
            let keyword = prop_oneof![
                Just("allOf"),
                Just("anyOf"),
                Just("oneOf"),
                Just("not"),
                Just("if"),
                Just("items"),
                Just("prefixItems"),
                Just("additionalProperties"),
                Just("contains"),
                Just("properties"),
                Just("$defs"),
                Just("patternProperties"),
                Just("dependentSchemas"),
                Just("required"),
            ];
            let value = prop_oneof![inner, named.clone(), list, Just(json!(["a", "a b"]))];
            let members = proptest::collection::btree_map(keyword, value, 0..4);
            (members, named, any::<bool>()).prop_map(|(members, properties, typed)| {
                let mut schema = json!(members);
                if typed {
                    schema["type"] = json!("object");
                    schema["properties"] = properties;
                }
                schema
            })
        })
    }

    proptest! {
        #[test]
        fn is_dropped_or_keeps_every_invariant(schema in schema()) {
            for profile in Profile::ALL {
                if let Ok(result) = lower(&schema, profile) {
                    check_invariants(&result, profile);
                    prop_assert_eq!(&lower(&schema, profile).unwrap(), &result);
                    let _ = result.restore(&schema.to_string());
                }
            }
        }
    }
}

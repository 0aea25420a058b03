//! A table of schemas as servers in the field send them.

#![allow(
    clippy::needless_pass_by_value,
    clippy::too_many_lines,
    reason = "a table reads better in one piece"
)]

use super::*;

/// A schema whose property `a` is this.
fn property(schema: Value) -> Value {
    json!({"type": "object", "properties": {"a": schema}})
}

fn read(schema: &Value) -> (Result<Value, String>, Vec<String>) {
    let mut notes = Vec::new();
    let read = input_schema(schema.clone(), &mut notes);
    (read, notes)
}

/// What the protocol's own clients demand of a schema, or their whole list is lost.
fn assert_legal(schema: &Value) {
    assert_eq!(schema["type"], "object", "{schema}");
    if let Some(properties) = schema.get("properties") {
        let properties = properties.as_object().unwrap();
        assert!(properties.values().all(Value::is_object), "{schema}");
    }
    if let Some(required) = schema.get("required") {
        let required = required.as_array().unwrap();
        assert!(required.iter().all(Value::is_string), "{schema}");
    }
    check_parameters("t", schema).unwrap();
    JsonSchemaFactory.compile(schema).unwrap();
}

/// Schemas that are usable as they are.
fn valid() -> Vec<Value> {
    let seven = "http://json-schema.org/draft-07/schema#";
    let four = "http://json-schema.org/draft-04/schema#";
    vec![
        json!({"type": "object"}),
        json!({"type": "object", "properties": {}}),
        json!({"type": "object", "required": []}),
        property(json!({})),
        property(json!({"type": ["string", "null"]})),
        property(json!({"type": "string", "nullable": true})),
        property(json!({"type": "string", "default": 5})),
        property(json!({"type": "string", "default": null})),
        property(json!({"type": "string", "format": "made-up"})),
        property(json!({"type": "string", "example": "x", "x-order": 1})),
        property(json!({"type": "array", "items": true})),
        property(json!({"type": "array", "items": {}})),
        property(json!({"type": "array"})),
        property(json!({"enum": ["a", "b", null, 1]})),
        property(json!({"enum": []})),
        property(json!({"const": {"type": "int"}})),
        property(json!({"$ref": "#"})),
        property(json!({"$ref": "#/properties/b"})),
        property(json!({"pattern": "^[a-z]+$"})),
        property(json!({"pattern": "(?<=a)b"})),
        property(json!({"pattern": "^(?!.*\\.\\.)[\\w.]+$"})),
        property(json!({"pattern": "^\\d{4}-\\d{2}$"})),
        property(json!({"pattern": "a\\/b"})),
        property(json!({"anyOf": [{"type": "string"}, {"type": "null"}]})),
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        json!({"type": "object", "$schema": seven, "properties": {"a": {"items": [{}, {}]}}}),
        json!({"type": "object", "$schema": four, "properties": {"a": {"minimum": 1, "exclusiveMinimum": true}}}),
        json!({"type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema"}),
        json!({"type": "object", "definitions": {"x": {}}, "properties": {"a": {"$ref": "#/definitions/x"}}}),
    ]
    .into_iter()
    .map(|mut schema| {
        // The target of one of them.
        if schema.pointer("/properties/a/$ref") == Some(&"#/properties/b".into()) {
            schema["properties"]["b"] = json!({"type": "string"});
        }
        schema
    })
    .collect()
}

/// Schemas with a mistake, and what they are read as.
fn repaired() -> Vec<(Value, Value)> {
    let object = json!({"type": "object"});
    let four = "http://json-schema.org/draft-04/schema#";
    let seven = "http://json-schema.org/draft-07/schema#";
    let any = property(json!({}));
    let mut table = vec![
        (json!({}), object.clone()),
        (json!(true), object.clone()),
        (json!([]), object.clone()),
        (json!("{\"type\":\"object\"}"), object.clone()),
        (json!({"type": ["object", "null"]}), object.clone()),
        (json!({"type": ["object"]}), object.clone()),
        (json!({"type": "Object"}), object.clone()),
        (json!({"type": "dict"}), object.clone()),
        (json!({"type": null}), object.clone()),
        (json!({"type": 1}), object.clone()),
        (json!({"type": "object", "properties": []}), object.clone()),
        (
            json!({"type": "object", "properties": null}),
            object.clone(),
        ),
        (
            json!({"type": "object", "properties": "none"}),
            object.clone(),
        ),
        (
            json!({"type": "object", "properties": [{"name": "a"}], "additionalProperties": false}),
            object.clone(),
        ),
        (json!({"type": "object", "required": true}), object.clone()),
        (json!({"type": "object", "required": null}), object.clone()),
        (json!({"type": "object", "required": {}}), object.clone()),
        (json!({"type": "object", "required": "a"}), object.clone()),
        (
            json!({"type": "object", "required": ["a", "a", 1]}),
            json!({"type": "object", "required": ["a"]}),
        ),
        (
            json!({"type": "object", "properties": {"a": {}}, "required": "a"}),
            json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
        ),
        (
            property(json!({"type": "string", "required": true})),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
        ),
        (
            property(json!({"type": "string", "required": false})),
            property(json!({"type": "string"})),
        ),
        (
            json!({"type": "object", "properties": {"a": {"required": true}, "b": {}}, "required": ["b"]}),
            json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b"]}),
        ),
        (
            json!({"type": "object", "description": null}),
            object.clone(),
        ),
        (json!({"type": "object", "title": 3}), object.clone()),
        (json!({"type": "object", "$comment": []}), object.clone()),
        (
            json!({"type": "object", "additionalProperties": null}),
            object.clone(),
        ),
        (
            json!({"type": "object", "additionalProperties": "no"}),
            object.clone(),
        ),
        (
            json!({"type": "object", "additionalProperties": "false"}),
            json!({"type": "object", "additionalProperties": false}),
        ),
        (
            json!({"type": "object", "additionalProperties": "string"}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
        ),
        (
            json!({"type": "object", "$schema": "https://example.com/schema"}),
            object.clone(),
        ),
        (json!({"type": "object", "$schema": 7}), object.clone()),
        (json!({"type": "object", "$schema": null}), object.clone()),
        (json!({"type": "object", "$id": 7}), object.clone()),
        (json!({"type": "object", "$defs": []}), object.clone()),
        (
            json!({"type": "object", "definitions": null}),
            object.clone(),
        ),
        (json!({"type": "object", "allOf": []}), object.clone()),
        (json!({"type": "object", "anyOf": null}), object.clone()),
        (
            json!({"type": "object", "allOf": {"required": ["a"]}}),
            json!({"type": "object", "allOf": [{"required": ["a"]}]}),
        ),
        (
            json!({"type": "object", "minProperties": -1}),
            object.clone(),
        ),
        (
            json!({"type": "object", "patternProperties": []}),
            object.clone(),
        ),
        (
            json!({"type": "object", "patternProperties": {"(": {}}, "additionalProperties": false}),
            json!({"type": "object", "patternProperties": {}}),
        ),
        (
            json!({"type": "object", "dependentRequired": []}),
            object.clone(),
        ),
        (property(Value::Null), any.clone()),
        (property(json!([])), any.clone()),
        (property(json!(7)), any.clone()),
        (property(json!(true)), any.clone()),
        (property(json!(false)), property(json!({"not": {}}))),
        (
            property(json!("string")),
            property(json!({"type": "string"})),
        ),
        (property(json!("a path")), any.clone()),
        (
            property(json!({"type": "array", "items": [{"type": "int"}, {}]})),
            property(json!({"type": "array", "prefixItems": [{"type": "integer"}, {}]})),
        ),
        (
            property(json!({"items": [{}], "additionalItems": false})),
            property(json!({"prefixItems": [{}], "items": false})),
        ),
        (
            property(json!({"type": "array", "items": null})),
            property(json!({"type": "array"})),
        ),
        (
            property(json!({"type": "array", "items": "str"})),
            property(json!({"type": "array", "items": {"type": "string"}})),
        ),
        (
            property(json!({"type": "array", "items": []})),
            property(json!({"type": "array"})),
        ),
        (property(json!({"type": []})), any.clone()),
        (
            property(json!({"type": ["string", "string"]})),
            property(json!({"type": ["string"]})),
        ),
        (
            property(json!({"type": ["string", null]})),
            property(json!({"type": ["string", "null"]})),
        ),
        (
            property(json!({"type": "string|null"})),
            property(json!({"type": ["string", "null"]})),
        ),
        (property(json!({"type": {"type": "string"}})), any.clone()),
        (property(json!({"type": true})), any.clone()),
        (property(json!({"enum": "a"})), any.clone()),
        (property(json!({"enum": null})), any.clone()),
        (property(json!({"enum": {"a": 1}})), any.clone()),
        (property(json!({"description": ["a", "b"]})), any.clone()),
        (property(json!({"description": {"en": "x"}})), any.clone()),
        (property(json!({"format": 1})), any.clone()),
        (property(json!({"format": null})), any.clone()),
        (
            property(json!({"examples": "x"})),
            property(json!({"examples": ["x"]})),
        ),
        (property(json!({"examples": null})), any.clone()),
        (
            property(json!({"deprecated": "true"})),
            property(json!({"deprecated": true})),
        ),
        (property(json!({"readOnly": 1})), any.clone()),
        (property(json!({"uniqueItems": null})), any.clone()),
        (
            property(json!({"minimum": "1"})),
            property(json!({"minimum": 1})),
        ),
        (property(json!({"minimum": null})), any.clone()),
        (property(json!({"maximum": "many"})), any.clone()),
        (
            property(json!({"minimum": 1, "exclusiveMinimum": true})),
            property(json!({"exclusiveMinimum": 1})),
        ),
        (
            property(json!({"maximum": 1, "exclusiveMaximum": false})),
            property(json!({"maximum": 1})),
        ),
        (property(json!({"exclusiveMaximum": true})), any.clone()),
        (property(json!({"multipleOf": 0})), any.clone()),
        (
            property(json!({"multipleOf": "0.5"})),
            property(json!({"multipleOf": 0.5})),
        ),
        (
            property(json!({"minLength": "3"})),
            property(json!({"minLength": 3})),
        ),
        (property(json!({"maxLength": -1})), any.clone()),
        (property(json!({"maxLength": 1.5})), any.clone()),
        (property(json!({"maxItems": null})), any.clone()),
        (property(json!({"$ref": "#/$defs/missing"})), any.clone()),
        (property(json!({"$ref": "#/properties/a"})), any.clone()),
        (property(json!({"$ref": 7})), any.clone()),
        (property(json!({"$ref": null})), any.clone()),
        (property(json!({"$dynamicRef": "#missing"})), any.clone()),
        (property(json!({"$anchor": "not an anchor"})), any.clone()),
        (
            json!({"type": "object", "$defs": {"x": {"type": "string"}}, "properties": {"a": {"$ref": "#/definitions/x"}}}),
            json!({"type": "object", "$defs": {"x": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/x"}}}),
        ),
        (
            property(json!({"$defs": {"x": {"type": "string"}}, "anyOf": [{"$ref": "#/$defs/x"}]})),
            property(
                json!({"$defs": {"x": {"type": "string"}}, "anyOf": [{"$ref": "#/properties/a/$defs/x"}]}),
            ),
        ),
        (
            property(json!({"pattern": "[^]"})),
            property(json!({"pattern": "[\\s\\S]"})),
        ),
        (
            property(json!({"pattern": "^[^]*$"})),
            property(json!({"pattern": "^[\\s\\S]*$"})),
        ),
        (
            property(json!({"pattern": "(?<q>['\"]).*\\k<q>"})),
            property(json!({"pattern": "(?<q>['\"]).*\\1"})),
        ),
        (property(json!({"pattern": "("})), any.clone()),
        (property(json!({"pattern": "*"})), any.clone()),
        (property(json!({"pattern": "a{99999999}"})), any.clone()),
        (property(json!({"pattern": null})), any.clone()),
        (property(json!({"pattern": 7})), any.clone()),
        (property(json!({"not": {"pattern": "("}})), any.clone()),
        (property(json!({"not": null})), any.clone()),
        (
            property(json!({"oneOf": [{"pattern": "("}, {"type": "null"}]})),
            property(json!({"anyOf": [{}, {"type": "null"}]})),
        ),
        (
            property(json!({"if": {"pattern": "("}, "then": {"minLength": 1}})),
            any.clone(),
        ),
        (
            json!({"type": "object", "$schema": four, "properties": {"a": {"exclusiveMinimum": 1}}, "required": []}),
            json!({"type": "object", "$schema": four, "properties": {"a": {"exclusiveMinimum": true, "minimum": 1}}}),
        ),
        (
            json!({"type": "object", "$schema": seven, "properties": {"a": {"type": "str"}}}),
            json!({"type": "object", "$schema": seven, "properties": {"a": {"type": "string"}}}),
        ),
    ];
    for (written, kind) in [
        ("int", "integer"),
        ("Integer", "integer"),
        ("long", "integer"),
        ("str", "string"),
        ("STRING", "string"),
        ("text", "string"),
        ("bool", "boolean"),
        ("float", "number"),
        ("double", "number"),
        ("dict", "object"),
        ("map", "object"),
        ("list", "array"),
        ("tuple", "array"),
        ("None", "null"),
    ] {
        table.push((
            property(json!({"type": written})),
            property(json!({"type": kind})),
        ));
    }
    for unknown in ["any", "mixed", "", "file", "date", "Foo"] {
        table.push((property(json!({"type": unknown})), any.clone()));
    }
    table
}

#[test]
fn valid_schemas_stay_as_they_are() {
    for schema in valid() {
        let (read, notes) = read(&schema);
        let read = read.unwrap_or_else(|error| panic!("{schema}: {error}"));
        assert_eq!(read, schema);
        assert_eq!(notes, [""; 0], "{schema}");
        assert_legal(&read);
    }
}

#[test]
fn harmless_mistakes_are_repaired_and_reported() {
    let table = repaired();
    assert!(table.len() >= 73, "{}", table.len());
    for (schema, expected) in table {
        let (read, notes) = read(&schema);
        let read = read.unwrap_or_else(|error| panic!("{schema}: {error}"));
        assert_eq!(read, expected, "{schema}");
        assert_eq!(notes.is_empty(), schema == json!({}), "{schema}: {notes:?}");
        assert_legal(&read);
        // What is remembered is read again.
        let (again, notes) = self::read(&read);
        assert_eq!((again, notes), (Ok(read), Vec::new()));
    }
}

#[test]
fn schemas_without_a_usable_meaning_are_refused() {
    let mut deep = json!({"type": "int"});
    for _ in 0..70 {
        deep = property(deep);
    }
    for (schema, reason) in [
        (
            json!({"type": "string"}),
            "`inputSchema` is not of type `object` but `string`",
        ),
        (
            json!({"type": ["array", "null"]}),
            "`inputSchema` is not of type `object`",
        ),
        (json!([1]), "`inputSchema` is not a schema"),
        (json!("text"), "`inputSchema` is not a schema"),
        (json!(false), "`inputSchema` is not a schema"),
        (json!(3), "`inputSchema` is not a schema"),
        (
            property(json!({"$ref": "https://example.com/a.json"})),
            "`https://example.com/a.json`, which is outside",
        ),
        (
            property(json!({"$ref": "other.json#/x"})),
            "which is outside",
        ),
        (deep, "nested deeper than 128"),
        (
            property(json!({"description": "x".repeat(300_000)})),
            "more than 262144",
        ),
    ] {
        let error = read(&schema).0.unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn what_remains_of_a_schema_is_still_validated() {
    let schema = json!({
        "type": "object", "required": ["path"],
        "properties": {"path": {"type": "str", "minLength": "1", "pattern": "("}, "lines": {"type": "int", "minimum": 0}},
        "additionalProperties": "false",
    });
    let (schema, notes) = read(&schema);
    let validator = JsonSchemaFactory.compile(&schema.unwrap()).unwrap();
    assert_eq!(notes.len(), 5, "{notes:?}");
    for (arguments, is_valid) in [
        (json!({"path": "x", "lines": 3}), true),
        (json!({"path": "("}), true),
        (json!({"path": ""}), false),
        (json!({"path": 7}), false),
        (json!({"lines": 3}), false),
        (json!({"path": "x", "lines": -1}), false),
        (json!({"path": "x", "other": 1}), false),
    ] {
        assert_eq!(validator.is_valid(&arguments), is_valid, "{arguments}");
    }
}

#[test]
fn translated_patterns_match_the_same_texts() {
    for (pattern, matches, others) in [
        ("^[^]$", vec!["a", "\n", "é"], vec!["", "ab"]),
        (
            "^(?<q>['\"])x\\k<q>$",
            vec!["'x'", "\"x\""],
            vec!["'x\"", "x"],
        ),
        ("^\\u0041\\x42$", vec!["AB"], vec!["ab"]),
        ("^[\\b]$", vec!["\u{8}"], vec!["b"]),
        ("^\\@\\-\\'$", vec!["@-'"], vec!["@"]),
        ("^{a}$", vec!["{a}"], vec!["a"]),
        ("^a]$", vec!["a]"], vec!["a"]),
    ] {
        let translated = patterns::translated(pattern).unwrap_or_else(|| panic!("{pattern}"));
        let schema = json!({ "pattern": translated });
        let validator = JsonSchemaFactory.compile(&schema).unwrap();
        for text in matches {
            assert!(validator.is_valid(&text.into()), "{pattern} {text:?}");
        }
        for text in others {
            assert!(!validator.is_valid(&text.into()), "{pattern} {text:?}");
        }
    }
    for pattern in ["(", "[z-a]", "(?<a>x)\\k<b>"] {
        assert_eq!(patterns::translated(pattern), None, "{pattern}");
    }
}

#[test]
fn output_schemas_may_be_of_any_type() {
    for (schema, expected) in [
        (json!({"type": "array"}), Ok(json!({"type": "array"}))),
        (json!({"type": "obj"}), Ok(json!({}))),
        (json!({"properties": []}), Ok(json!({}))),
        (json!({"$ref": "https://example.com/x"}), Err(())),
        (json!([]), Err(())),
    ] {
        let read = output_schema(schema.clone(), &mut Vec::new()).map_err(|_| ());
        assert_eq!(read, expected, "{schema}");
    }
}

mod random {
    use proptest::prelude::*;

    use super::*;

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-3_i64..1000).prop_map(Value::from),
            Just(json!(1.5)),
            proptest::sample::select(vec![
                "a",
                "int",
                "string",
                "#",
                "#/$defs/a",
                "",
                "(",
                "[^]",
                "true",
                "3",
                "object"
            ])
            .prop_map(Value::from),
        ];
        let keys = proptest::sample::select(vec![
            "type",
            "properties",
            "required",
            "items",
            "enum",
            "const",
            "$ref",
            "$defs",
            "pattern",
            "minLength",
            "minimum",
            "exclusiveMinimum",
            "additionalProperties",
            "anyOf",
            "oneOf",
            "allOf",
            "not",
            "if",
            "then",
            "patternProperties",
            "description",
            "default",
            "format",
            "a",
            "b",
            "dependencies",
            "$schema",
            "$id",
            "$anchor",
            "prefixItems",
            "contains",
            "multipleOf",
            "uniqueItems",
            "examples",
            "$dynamicRef",
        ]);
        leaf.prop_recursive(5, 40, 6, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec((keys.clone(), inner), 0..6).prop_map(|members| members
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_value_is_read_as_a_legal_schema_or_refused(schema in values()) {
            let (read, notes) = read(&schema);
            if let Ok(read) = read {
                assert_legal(&read);
                if notes.is_empty() {
                    prop_assert_eq!(read.get("properties"), schema.get("properties"));
                }
            }
        }
    }
}

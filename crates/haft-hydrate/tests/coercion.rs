//! Schema-guided repair: the one reading that the schema fixes, or none.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

use haft_core::{FinishReason, RepairKind, ValidatorFactory};
use haft_hydrate::{AuditedRepairer, Contract, JsonSchemaFactory, Root, check_arguments};
use serde_json::{Value, json};

/// The repaired value and the kinds of its edits, or nothing.
fn repaired(schema: &Value, arguments: &Value) -> Option<(Value, Vec<RepairKind>)> {
    let contract = Contract {
        schema,
        validator: &*JsonSchemaFactory.compile(schema).unwrap(),
        factory: &JsonSchemaFactory,
        tool: "the_tool",
        root: Root::Object,
    };
    let raw = arguments.to_string().into();
    let checked = check_arguments(
        &raw,
        FinishReason::Normal,
        &contract,
        Some(&AuditedRepairer),
    );
    assert!(
        checked.validated.is_none() || checked.repair.is_some(),
        "was valid already"
    );
    let kinds = checked
        .repair?
        .events
        .iter()
        .map(|event| event.kind)
        .collect();
    Some((checked.validated?, kinds))
}

#[allow(clippy::needless_pass_by_value, reason = "reads better at its calls")]
fn one(property: Value) -> Value {
    json!({"type": "object", "properties": {"x": property}, "required": ["x"]})
}

#[test]
fn values_are_brought_to_the_one_wanted_type() {
    use RepairKind::{DecodedJson, EnumBlanks, EnumCase, ParsedLiteral, WrappedScalar};
    for (property, written, meant, kind) in [
        (
            json!({"type": "integer"}),
            json!("5"),
            json!(5),
            ParsedLiteral,
        ),
        (
            json!({"type": "integer"}),
            json!("-5"),
            json!(-5),
            ParsedLiteral,
        ),
        (
            json!({"type": "number"}),
            json!("1.5e3"),
            json!(1500.0),
            ParsedLiteral,
        ),
        (
            json!({"type": ["integer", "null"]}),
            json!("5"),
            json!(5),
            ParsedLiteral,
        ),
        (
            json!({"type": "boolean"}),
            json!("True"),
            json!(true),
            ParsedLiteral,
        ),
        (
            json!({"type": "boolean"}),
            json!("false"),
            json!(false),
            ParsedLiteral,
        ),
        (
            json!({"type": "array"}),
            json!("[1, 2]"),
            json!([1, 2]),
            DecodedJson,
        ),
        (
            json!({"type": "object"}),
            json!("{\"a\": 1}"),
            json!({"a": 1}),
            DecodedJson,
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!("a"),
            json!(["a"]),
            WrappedScalar,
        ),
        (
            json!({"type": "array"}),
            json!(7),
            json!([7]),
            WrappedScalar,
        ),
        (
            json!({"enum": ["celsius", "kelvin"]}),
            json!("CELSIUS"),
            json!("celsius"),
            EnumCase,
        ),
        (
            json!({"enum": ["celsius"]}),
            json!(" celsius\n"),
            json!("celsius"),
            EnumBlanks,
        ),
    ] {
        let (value, kinds) = repaired(&one(property.clone()), &json!({"x": written}))
            .unwrap_or_else(|| panic!("{property} {written}"));
        assert_eq!(value, json!({"x": meant}), "{property} {written}");
        assert_eq!(kinds, [kind], "{property} {written}");
    }
}

#[test]
fn what_is_no_literal_of_the_type_is_refused() {
    for (property, written) in [
        (json!({"type": "integer"}), json!("a few")),
        (json!({"type": "integer"}), json!("5.5")),
        (json!({"type": "integer"}), json!(5.5)),
        (json!({"type": "integer"}), json!("007")),
        (json!({"type": "integer"}), json!("+5")),
        (json!({"type": "integer"}), json!(" 5")),
        (json!({"type": "integer"}), json!("5 items")),
        (json!({"type": "integer"}), json!("1,000")),
        (json!({"type": "integer"}), json!("99999999999999999999999")),
        (json!({"type": "number"}), json!("N/A")),
        (json!({"type": "number"}), json!("NaN")),
        (json!({"type": "number"}), json!("1e400")),
        (json!({"type": "number"}), json!({"value": 3})),
        (json!({"type": "number"}), json!(true)),
        (json!({"type": "boolean"}), json!("yes")),
        (json!({"type": "boolean"}), json!("1")),
        (json!({"type": "boolean"}), json!(1)),
        (json!({"type": "boolean"}), json!("TRUE!")),
        (json!({"type": "string"}), json!(5)),
        (json!({"type": "string"}), json!(true)),
        (json!({"type": "object"}), json!("[1]")),
        (json!({"type": "object"}), json!("text")),
        (json!({"type": "object"}), json!("{\"a\": 1, \"a\": 2}")),
        (json!({"type": "array"}), json!(null)),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!("[a, b]"),
        ),
        (
            json!({"type": "array", "items": {"type": "integer"}}),
            json!("a"),
        ),
        (json!({"enum": ["celsius", "Celsius"]}), json!("CELSIUS")),
        (json!({"enum": ["celsius"]}), json!("celcius")),
        (json!({"type": ["integer", "boolean"]}), json!("5")),
    ] {
        assert_eq!(
            repaired(&one(property.clone()), &json!({"x": written})),
            None,
            "{property} {written}"
        );
    }
}

#[test]
fn null_for_an_optional_property_is_dropped_and_for_a_required_one_refused() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
        "required": ["a"]
    });
    assert_eq!(
        repaired(&schema, &json!({"a": "x", "b": null})),
        Some((json!({"a": "x"}), vec![RepairKind::DroppedNull]))
    );
    assert_eq!(repaired(&schema, &json!({"a": null})), None);
}

#[test]
fn coercion_reaches_nested_values_and_references() {
    let schema = json!({
        "type": "object",
        "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
        "$defs": {"item": {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "on": {"type": "boolean"}},
            "required": ["id"],
            "additionalProperties": false
        }}
    });
    let (value, kinds) = repaired(
        &schema,
        &json!({"items": "[{\"id\": \"1\"}, {\"id\": 2, \"on\": \"True\"}]"}),
    )
    .unwrap();
    assert_eq!(value, json!({"items": [{"id": 1}, {"id": 2, "on": true}]}));
    assert_eq!(kinds.len(), 3);
}

#[test]
fn in_a_union_only_one_reading_is_taken() {
    let id_or_name = one(json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}));
    assert!(
        repaired(&id_or_name, &json!({"x": true})).is_none(),
        "no branch accepts it, with or without coercion"
    );
    let number_or_list = one(json!({"oneOf": [
        {"type": "integer"},
        {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    ]}));
    assert_eq!(
        repaired(&number_or_list, &json!({"x": {"n": "3"}})).map(|(value, _)| value),
        Some(json!({"x": {"n": 3}}))
    );
    let ambiguous =
        one(json!({"anyOf": [{"type": "integer"}, {"type": "boolean"}, {"type": "array"}]}));
    assert_eq!(
        repaired(&ambiguous, &json!({"x": "5"})),
        None,
        "5 or [\"5\"]"
    );
}

#[test]
fn an_undeclared_property_is_never_dropped() {
    let closed = json!({
        "type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false
    });
    assert_eq!(repaired(&closed, &json!({"a": "x", "b": 1})), None);
    assert_eq!(repaired(&closed, &json!({"a": "x", "b": null})), None);
}

#[test]
fn a_missing_required_value_is_never_made_up() {
    for property in [
        json!({"type": "string", "default": "x"}),
        json!({"const": 7}),
        json!({"enum": ["only"]}),
        json!({"type": "array"}),
        json!({"type": "null"}),
    ] {
        assert_eq!(
            repaired(&one(property.clone()), &json!({})),
            None,
            "{property}"
        );
    }
}

#[test]
fn more_than_16_coercions_are_too_many() {
    let schema = one(json!({"type": "array", "items": {"type": "integer"}}));
    let texts = |count: usize| json!({"x": vec!["1"; count]});
    assert!(repaired(&schema, &texts(16)).is_some());
    assert!(repaired(&schema, &texts(17)).is_none());
}

#[test]
fn what_the_schema_leaves_open_is_left_alone() {
    let schema = json!({
        "type": "object",
        "properties": {"free": true, "n": {"type": "integer"}},
        "required": ["n"]
    });
    assert_eq!(
        repaired(
            &schema,
            &json!({"free": {"n": "1", "list": "[1]"}, "n": "2"})
        )
        .unwrap()
        .0,
        json!({"free": {"n": "1", "list": "[1]"}, "n": 2})
    );
}

#[test]
fn a_wrapper_is_taken_off_before_the_rest() {
    let schema = one(json!({"type": "integer"}));
    let (value, kinds) = repaired(
        &schema,
        &json!({"name": "the_tool", "arguments": {"x": "4"}}),
    )
    .unwrap();
    assert_eq!(value, json!({"x": 4}));
    assert_eq!(kinds, [RepairKind::Unwrapped, RepairKind::ParsedLiteral]);
    assert_eq!(
        repaired(&schema, &json!([{"x": 4}])).unwrap().1,
        [RepairKind::Unwrapped]
    );
    assert_eq!(repaired(&schema, &json!([{"x": 4}, {"x": 5}])), None);
    assert_eq!(
        repaired(&schema, &json!({"name": "other", "arguments": {"x": 4}})),
        None
    );
}

#[test]
fn a_value_that_text_repair_made_valid_is_not_coerced() {
    let contract_schema = json!({"type": "object", "additionalProperties": {"type": "object"}});
    let validator = JsonSchemaFactory.compile(&contract_schema).unwrap();
    let contract = Contract {
        schema: &contract_schema,
        validator: &*validator,
        factory: &JsonSchemaFactory,
        tool: "the_tool",
        root: Root::Object,
    };
    let raw = r#"{"input": {"x": {"k": 1}},}"#.into();
    let checked = check_arguments(
        &raw,
        FinishReason::Normal,
        &contract,
        Some(&AuditedRepairer),
    );
    assert_eq!(checked.validated, Some(json!({"input": {"x": {"k": 1}}})));
}

#[test]
fn a_wrapper_that_the_schema_may_know_stays_on() {
    let closed = json!({"type": "object", "properties": {"x": {}}, "additionalProperties": false});
    for schema in [
        json!({"type": "object", "allOf": [{"properties": {"input": {"type": "integer"}}}], "required": ["x"]}),
        json!({"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"properties": {"input": {"type": "integer"}}}}, "required": ["x"]}),
        json!({"type": "object", "patternProperties": {"^in": {"type": "integer"}}, "required": ["x"]}),
    ] {
        assert_eq!(
            repaired(&schema, &json!({"input": {"x": 1}})),
            None,
            "{schema}"
        );
    }
    assert!(repaired(&closed, &json!({"input": {"x": 1}})).is_some());
}

#[test]
fn null_is_dropped_only_for_declared_properties() {
    for map in [
        json!({"additionalProperties": {"type": "integer"}}),
        json!({"patternProperties": {"^a": {"type": "integer"}}}),
    ] {
        let schema = one(map);
        assert_eq!(
            repaired(&schema, &json!({"x": {"alice": null, "bob": 3}})),
            None,
            "{schema}"
        );
    }
}

#[test]
fn rounding_makes_no_integer() {
    let schema = one(json!({"type": "integer"}));
    for text in ["1.0000000000000000001", "1e0", "1.5"] {
        assert_eq!(repaired(&schema, &json!({"x": text})), None, "{text}");
    }
    assert_eq!(
        repaired(&schema, &json!({"x": "5.0"})).map(|(value, _)| value),
        Some(json!({"x": 5.0}))
    );
}

#[test]
fn hostile_calls_do_not_make_a_repair_expensive() {
    let long_key = "k".repeat(100_000);
    let many = vec!["1"; 20_000];
    let lists = json!({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}});
    assert_eq!(repaired(&lists, &json!({long_key: many})), None);

    let patterns: serde_json::Map<_, _> = (0..30)
        .map(|n| (format!("^{n}"), json!({"type": "integer"})))
        .collect();
    let members: serde_json::Map<_, _> = (0..5_000).map(|n| (n.to_string(), json!("x"))).collect();
    let schema = json!({"type": "object", "patternProperties": patterns});
    assert_eq!(repaired(&schema, &Value::Object(members)), None);
}

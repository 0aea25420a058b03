use super::*;
use crate::in_place::measure;
use serde_json::json;

fn explodes(schema: &Value) -> bool {
    can_explode(schema, measure(schema).unwrap())
}

fn cost(schema: &Value, value: &Value) -> Result<Cost, TooCostly> {
    count(schema, &Patterns::of(schema).unwrap(), value)
}

#[test]
fn ordinary_schemas_are_not_counted() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "pattern": "^[a-z]+$"},
            "mode": {"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}
        }
    });
    assert!(!explodes(&schema));
    let patterns = Patterns::of(&schema).unwrap();
    assert!(!patterns.can_be_slow(1_000));
    assert!(patterns.can_be_slow(1_000_000));
}

#[test]
fn recursion_repetition_and_look_around_are_counted() {
    assert!(explodes(&json!({"properties": {"child": {"$ref": "#"}}})));
    assert!(explodes(&json!({"unevaluatedProperties": false})));
    for pattern in ["^(?=.*[0-9]).+$", r"(a)\1"] {
        let patterns = Patterns::of(&json!({"pattern": pattern})).unwrap();
        assert!(patterns.can_be_slow(0), "{pattern}");
    }
}

#[test]
fn a_recursive_union_costs_an_explanation_more_than_a_verdict() {
    let branch =
        |kind: u8| json!({"properties": {"child": {"$ref": "#"}, "kind": {"const": kind}}});
    let schema = json!({"anyOf": [branch(1), branch(2)]});
    let mut value = json!({"kind": 3});
    for _ in 0..30 {
        value = json!({"kind": 1, "child": value});
    }
    let cost = cost(&schema, &value).unwrap();
    assert!(cost.verdict < 1_000, "{cost:?}");
    assert!(cost.explanation > 1_000_000_000, "{cost:?}");
}

#[test]
fn counting_itself_is_bounded() {
    let schema = json!({"items": {"$ref": "#"}, "allOf": [{}, {}, {}, {}]});
    let wide = Value::Array(vec![json!([]); 200_000]);
    assert_eq!(cost(&schema, &wide), Err(TooCostly::Size));
}

/// An object with this many members, whose names a backtracking pattern explodes on.
fn evil_members(count: usize) -> Value {
    let members = (0..count).map(|at| {
        (
            format!("{}{at}", "a".repeat(30)),
            json!("aaaaaaaaaaaaaaaaaaaaaaaaaaab"),
        )
    });
    Value::Object(members.collect())
}

/// Patterns that backtrack on long runs of `a`, all different.
fn evil_pattern(at: usize) -> String {
    format!("^(?:(?=a)a|(?=a)aa|b{at})+$")
}

#[test]
fn hostile_pairs_are_too_costly() {
    let evil: serde_json::Map<_, _> = (0..40).map(|at| (evil_pattern(at), json!({}))).collect();
    let wide = "a".repeat(900_000);
    let blown_up = "^[ab]*a[ab]{400}$";
    for (name, schema, value) in [
        (
            "pattern properties × names",
            json!({"patternProperties": evil}),
            evil_members(100),
        ),
        (
            "nested",
            json!({"properties": {"a": {"patternProperties": {evil_pattern(0): {}}}}}),
            json!({"a": evil_members(1)}),
        ),
        (
            "behind a reference",
            json!({"items": {"$ref": "#/x"}, "x": {"pattern": evil_pattern(0)}}),
            json!(["aaaaaaaaaaaaaaaaaaaaaaaaaaab"]),
        ),
        (
            "names",
            json!({"propertyNames": {"pattern": evil_pattern(0)}}),
            evil_members(1),
        ),
        (
            "union × items",
            json!({"items": {"anyOf": [{"pattern": evil_pattern(0)}, {"pattern": evil_pattern(1)}]}}),
            json!(vec!["aaaaaaaaaaaaaaaaaaaaaaaaaaab"; 100]),
        ),
        (
            "additional properties",
            json!({"additionalProperties": {"pattern": evil_pattern(0)}}),
            evil_members(3),
        ),
        (
            "many states over much text, without backtracking",
            json!({"pattern": blown_up}),
            json!(wide),
        ),
        (
            "look-ahead from every position of much text",
            json!({"pattern": "(?=a*b)c"}),
            json!(wide),
        ),
    ] {
        assert!(cost(&schema, &value).is_err(), "{name}");
    }
}

#[test]
fn honest_pairs_are_affordable() {
    let email = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$";
    let host = r"^(?=.{1,253}$)(?:(?!-)[A-Za-z0-9-]{1,63}(?<!-)\.)+[A-Za-z]{2,63}$";
    let picture = r"^data:image/(png|jpeg);base64,[A-Za-z0-9+/=]+$";
    let encoded = format!("data:image/png;base64,{}", "QUJD".repeat(200_000));
    for (name, schema, value) in [
        (
            "addresses",
            json!({"items": {"pattern": email}}),
            json!(vec!["ada.lovelace@example.org"; 500]),
        ),
        (
            "hosts",
            json!({"items": {"pattern": host}}),
            json!(vec!["www.example.org"; 50]),
        ),
        ("a picture", json!({"pattern": picture}), json!(encoded)),
        (
            "a password",
            json!({"pattern": r"^(?=.*[a-z])(?=.*[A-Z])(?=.*\d).{8,64}$"}),
            json!("Correct-Horse-Battery-5"),
        ),
        (
            "text that is not blank",
            json!({"pattern": r"^(?!\s*$)[\s\S]+$"}),
            json!("word ".repeat(4_000)),
        ),
    ] {
        assert!(
            cost(&schema, &value).is_ok(),
            "{name}: {:?}",
            cost(&schema, &value)
        );
    }
}

#[test]
fn schemas_whose_patterns_cost_too_much_to_compile_are_refused() {
    let many: serde_json::Map<_, _> = (0..2_000)
        .map(|at| (format!("^a{at}[x-z]+$"), json!({})))
        .collect();
    let large: Vec<_> = (0..100)
        .map(|at| json!({"pattern": format!("(?:[a-z]{{40}}|{at}){{40}}")}))
        .collect();
    for (name, schema) in [
        ("many", json!({"patternProperties": many})),
        ("large", json!({"anyOf": large})),
        ("repeated", json!({"pattern": "a{1000}{1000}"})),
        (
            "behind a reference that cannot be followed",
            json!({
                "$ref": "other.json#/x",
                "$defs": {"other": {"$id": "other.json", "x": {"pattern": "a{1000}{1000}"}}}
            }),
        ),
    ] {
        assert!(Patterns::of(&schema).is_err(), "{name}");
    }
    // What only looks like one, in a place for data, is none.
    let data = json!({"default": {"pattern": "*.rs"}, "examples": [{"pattern": "("}]});
    assert!(Patterns::of(&data).is_ok());
}

mod visits {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use jsonschema::{Keyword, ValidationError};
    use proptest::prelude::*;

    use super::*;

    /// A keyword that counts how often it is evaluated.
    struct Counter(Arc<AtomicU64>);

    impl<'i> Keyword<'i> for Counter {
        fn validate(&self, _: &'i Value) -> Result<(), ValidationError<'i>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn is_valid(&self, _: &'i Value) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed);
            true
        }
    }

    /// Puts the keyword into every schema.
    fn instrument(schema: &mut Value) {
        haft_core::subschemas_mut(schema, |_, sub| instrument(sub));
        if let Value::Object(members) = schema {
            members.insert("x-count".to_owned(), json!(true));
        }
    }

    fn visited(schema: &Value, value: &Value) -> u64 {
        let count = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&count);
        let validator = jsonschema::options()
            .with_keyword("x-count", move |_, _, _| {
                Ok(Box::new(Counter(Arc::clone(&counter))) as Box<dyn for<'i> Keyword<'i>>)
            })
            .build(schema)
            .unwrap();
        // Only the visits count here.
        let _ = validator.is_valid(value);
        count.load(Ordering::Relaxed)
    }

    fn schemas() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!({})),
            Just(json!({"type": "integer"})),
            Just(json!({"type": "object"})),
            Just(json!({"$ref": "#/$defs/shared"})),
            Just(json!({"properties": {"a": {"$ref": "#/$defs/deep"}}})),
        ];
        leaf.prop_recursive(4, 40, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 1..4).prop_map(|all| json!({"anyOf": all})),
                prop::collection::vec(inner.clone(), 1..4).prop_map(|all| json!({"allOf": all})),
                prop::collection::vec(inner.clone(), 1..4).prop_map(|all| json!({"oneOf": all})),
                inner
                    .clone()
                    .prop_map(|one| json!({"properties": {"a": one}})),
                inner
                    .clone()
                    .prop_map(|one| json!({"patternProperties": {"a|b": one}})),
                inner
                    .clone()
                    .prop_map(|one| json!({"additionalProperties": one})),
                inner.clone().prop_map(|one| json!({"propertyNames": one})),
                inner.clone().prop_map(|one| json!({"items": one})),
                inner.clone().prop_map(|one| json!({"not": one})),
                inner.clone().prop_map(
                    |one| json!({"anyOf": [one, {}], "unevaluatedProperties": {"type": "integer"}})
                ),
                inner.prop_map(|one| json!({"allOf": [one], "unevaluatedItems": false})),
            ]
        })
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(json!(1)), Just(json!("x")), Just(json!({}))];
        leaf.prop_recursive(4, 24, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
                inner.clone().prop_map(|one| json!({"a": one})),
                (inner.clone(), inner).prop_map(|(one, other)| json!({"a": one, "b": other})),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn the_count_bounds_what_the_library_really_visits(schema in schemas(), value in values()) {
            let mut schema = json!({
                "allOf": [schema],
                "$defs": {
                    "shared": {"anyOf": [{"type": "string"}, {"type": "object"}]},
                    "deep": {"anyOf": [
                        {"properties": {"a": {"$ref": "#/$defs/deep"}}},
                        {"items": {"$ref": "#/$defs/deep"}}
                    ]}
                }
            });
            instrument(&mut schema);
            let cost = cost(&schema, &value).unwrap();
            let visited = visited(&schema, &value);
            prop_assert!(visited <= cost.explanation, "{visited} {cost:?}");
            prop_assert!(visited <= FORGETFUL * cost.verdict, "{visited} {cost:?}");
        }
    }

    #[test]
    fn nested_unevaluated_properties_are_counted_as_often_as_they_are_visited() {
        let mut schema = json!({"type": "integer"});
        let mut value = json!("x");
        for _ in 0..12 {
            schema =
                json!({"anyOf": [{"properties": {"a": schema}}], "unevaluatedProperties": false});
            value = json!({"a": value});
        }
        instrument(&mut schema);
        let cost = cost(&schema, &value).unwrap();
        let visited = visited(&schema, &value);
        assert!(visited <= cost.verdict, "{visited} {cost:?}");
    }
}

#![allow(clippy::needless_pass_by_value, reason = "literals read better")]

use super::*;

fn lowered(schema: Value, profile: Profile) -> Value {
    lower(&schema, profile).unwrap().schema
}

fn dropped(schema: Value) -> String {
    lower(&schema, Profile::Generic).unwrap_err().to_string()
}

#[test]
fn a_root_that_says_nothing_is_an_object_without_properties() {
    for schema in [
        json!({}),
        json!(true),
        json!(null),
        json!({"type": "object"}),
    ] {
        for profile in Profile::ALL {
            let root = lowered(schema.clone(), profile);
            assert_eq!(
                (&root["type"], &root["properties"]),
                (&json!("object"), &json!({}))
            );
        }
    }
    assert_eq!(
        lowered(json!({"type": ["object", "null"]}), Profile::Openai)["type"],
        "object"
    );
}

#[test]
fn a_root_that_is_no_object_is_dropped() {
    for schema in [
        json!({"type": "string"}),
        json!({"type": ["array", "null"]}),
        json!({"enum": [1]}),
    ] {
        assert!(dropped(schema).contains("its root is no object"));
    }
    assert!(lower(&json!([]), Profile::Openai).is_err());
    assert!(lower(&json!(false), Profile::Openai).is_err());
}

#[test]
fn local_references_are_inlined_with_their_siblings() {
    let schema = json!({
        "$schema": "x", "$id": "https://example.com/s", "$comment": "c", "x-order": 1,
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/A", "description": "mine"},
            "b": {"$ref": "#here"},
            "c": {"$ref": "#/definitions/C%20D"},
            "d": {"$ref": "#/properties/a"},
            "x-kept": {"type": "null"},
            "id": {"type": "string"}
        },
        "$defs": {"A": {"type": "string", "description": "theirs"}, "B": {"$anchor": "here", "type": "null"}},
        "definitions": {"C D": {"$ref": "#/$defs/B"}}
    });
    assert_eq!(
        lowered(schema, Profile::Generic),
        json!({"type": "object", "properties": {
            "a": {"type": "string", "description": "mine"},
            "b": {"type": "null"},
            "c": {"type": "null"},
            "d": {"type": "string", "description": "mine"},
            "x-kept": {"type": "null"},
            "id": {"type": "string"}
        }})
    );
}

#[test]
fn a_reference_that_leads_outside_is_dropped_and_never_fetched() {
    for target in [
        "https://example.com/a.json",
        "file:///etc/passwd",
        "other.json#/x",
        "#/$defs/none",
    ] {
        let schema = json!({"type": "object", "properties": {"a": {"$ref": target}}});
        for profile in Profile::ALL {
            assert!(lower(&schema, profile).is_err(), "{target}");
        }
    }
    let data = json!({"type": "object", "properties": {"a": {"const": {"$ref": "https://x"}}, "$ref": {"type": "string"}}});
    assert_eq!(lowered(data.clone(), Profile::Gemini), data);
}

#[test]
fn a_cycle_becomes_open_after_four_rounds() {
    let schema = json!({
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}
    });
    let result = lower(&schema, Profile::Openai).unwrap();
    let mut place = &result.schema["properties"]["root"];
    let mut depth = 0;
    while place.get("type").is_some() {
        place = &place["properties"]["next"];
        depth += 1;
    }
    assert_eq!((depth, place), (4, &json!({})));
    assert_eq!(result.notes, ["it contains itself: open after 4 rounds"]);
    let endless = json!({"type": "object", "allOf": [{"$ref": "#"}]});
    assert_eq!(
        lowered(endless, Profile::Openai),
        json!({"type": "object", "properties": {}})
    );
    let own = json!({"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}});
    assert_eq!(lowered(own, Profile::Openai)["properties"]["a"], json!({}));
}

#[test]
fn a_branching_cycle_is_unfolded_less_rather_than_dropped() {
    let branches: Map<_, _> = (0..12)
        .map(|n| (format!("b{n}"), json!({"$ref": "#/$defs/N"})))
        .collect();
    let schema = json!({"type": "object", "$ref": "#/$defs/N",
        "$defs": {"N": {"type": "object", "properties": branches}}});
    let result = lower(&schema, Profile::Generic).unwrap();
    assert_eq!(result.notes, ["it contains itself: open after 2 rounds"]);
}

#[test]
fn what_is_past_the_bounds_is_dropped() {
    let mut deep = json!({"type": "object"});
    for _ in 0..70 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    assert!(dropped(deep).contains("deeper"));
    let wide: Map<_, _> = (0..6_000).map(|n| (n.to_string(), json!({}))).collect();
    assert!(dropped(json!({"type": "object", "properties": wide})).contains("5000"));
    assert!(dropped(json!({"type": "object", "title": "x".repeat(300_000)})).contains("bytes"));
    // Doubles itself twenty times over without any cycle.
    let mut defs = Map::new();
    for n in 0..20 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        defs.insert(
            format!("d{n}"),
            json!({"type": "object", "properties": {"a": next, "b": next}}),
        );
    }
    defs.insert("d20".into(), json!({"type": "string"}));
    assert!(
        dropped(json!({"type": "object", "$ref": "#/$defs/d0", "$defs": defs})).contains("5000")
    );
}

#[test]
fn alternatives_at_the_root_become_properties() {
    let schema = json!({
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
        "oneOf": [
            {"properties": {"kind": {"const": "a"}, "x": {"type": "string"}}, "required": ["kind", "x"]},
            {"properties": {"kind": {"const": "b"}, "id": {"type": "string"}}, "required": ["kind"]},
            {"properties": {"kind": {"const": "a"}}, "required": ["kind"]}
        ],
        "allOf": [{"properties": {"z": true}, "required": ["z"], "minProperties": 1}, {"minProperties": 2}],
        "not": {"required": ["y"]}
    });
    let expected = json!({
        "type": "object",
        "required": ["id", "z", "kind"],
        "minProperties": 1,
        "properties": {
            "id": {"type": "integer"},
            "z": {},
            "kind": {"anyOf": [{"const": "a"}, {"const": "b"}]},
            "x": {"type": "string"}
        }
    });
    for profile in [Profile::Openai, Profile::Generic, Profile::Anthropic] {
        assert_eq!(lowered(schema.clone(), profile), expected);
    }
    assert_eq!(
        lowered(schema, Profile::Gemini)["oneOf"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

#[test]
fn every_object_gets_properties_and_every_array_items() {
    let schema = json!({"type": "object", "properties": {
        "o": {"type": "object"},
        "a": {"type": ["array", "null"]},
        "t": {"type": "array", "items": [{"type": "string"}, {"type": "object"}]},
        "any": true
    }});
    assert_eq!(
        lowered(schema, Profile::Openai)["properties"],
        json!({
            "o": {"type": "object", "properties": {}},
            "a": {"type": ["array", "null"], "items": {}},
            "t": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {}}]}},
            "any": {}
        })
    );
}

#[test]
fn strict_closes_requires_and_makes_nullable_and_is_undone() {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "pattern": "^[A-Z]", "description": "Where"},
            "unit": {"enum": ["c", "f"], "default": "c"},
            "when": {"type": "string", "format": "date"},
            "site": {"type": "string", "format": "uri"},
            "note": {"type": ["string", "null"]},
            "stops": {"type": "array", "items": {"type": "object", "properties": {"at": {"type": "integer"}}}},
            "how": {"oneOf": [{"const": "car"}, {"type": "integer"}]}
        },
        "required": ["city"]
    });
    let result = lower(&schema, Profile::OpenaiStrict).unwrap();
    assert!(result.strict, "{:?}", result.notes);
    assert_eq!(
        result.schema,
        json!({
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Where (pattern: \"^[A-Z]\")"},
                "unit": {"enum": ["c", "f", null], "description": "(default: \"c\")"},
                "when": {"type": ["string", "null"], "format": "date"},
                "site": {"type": ["string", "null"], "description": "(format: uri)"},
                "note": {"type": ["string", "null"]},
                "stops": {"type": ["array", "null"], "items": {
                    "type": "object",
                    "properties": {"at": {"type": ["integer", "null"]}},
                    "required": ["at"],
                    "additionalProperties": false
                }},
                "how": {"anyOf": [{"const": "car"}, {"type": "integer"}, {"type": "null"}]}
            },
            "required": ["city", "unit", "when", "site", "note", "stops", "how"],
            "additionalProperties": false
        })
    );
    let written = r#"{"city":null,"unit":null,"when":"2026-01-01","note":null,"stops":[{"at":null},{"at":1}],"how":null}"#;
    assert_eq!(
        result.restore(written).unwrap(),
        r#"{"city":null,"when":"2026-01-01","note":null,"stops":[{},{"at":1}]}"#
    );
    assert_eq!(
        result.restore(r#"{"city": "Oslo"}"#),
        None,
        "the bytes stay"
    );
    assert_eq!(result.restore(r#"{"unit": nul"#), None);
}

#[test]
fn what_cannot_be_strict_falls_back() {
    for property in [
        json!({"type": "object"}),
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": true}),
        json!({}),
        json!({"type": "array"}),
        json!({"allOf": [{"type": "string"}, {"type": "integer"}]}),
        json!({"type": "string", "not": {"const": "x"}}),
    ] {
        let schema = json!({"type": "object", "properties": {"p": property}});
        let strict = lower(&schema, Profile::OpenaiStrict).unwrap();
        assert!(!strict.strict && strict.is_faithful(), "{property}");
        assert_eq!(strict.schema, lowered(schema, Profile::Openai));
        assert!(strict.notes.last().unwrap().starts_with("not strict: "));
    }
}

#[test]
fn anthropic_names_are_legal_unique_and_mapped_back() {
    let long = "k".repeat(80);
    let schema = json!({
        "type": "object",
        "properties": {
            "a b": {"type": "object", "properties": {"a b": {"type": "string"}, "ü": {}}, "required": ["ü"]},
            "a_b": {"type": "integer"},
            "a/b": {"type": "array", "items": {"properties": {"a/b": {}}}},
            "": {},
            &long: {}
        },
        "required": ["a b", "a_b"],
        "dependentRequired": {"a/b": ["a b"]}
    });
    let result = lower(&schema, Profile::Anthropic).unwrap();
    assert_eq!(result.schema["required"], json!(["a_b_2", "a_b"]));
    assert_eq!(
        result.schema["dependentRequired"],
        json!({"a_b_3": ["a_b_2"]})
    );
    assert_eq!(result.key_map.len(), 5);
    super::invariants::check_keys(&result.schema);
    let written =
        json!({"a_b_2": {"a_b_2": "x", "__2": 1}, "a_b": 2, "a_b_3": [{"a_b_3": 3}], "_": 4});
    let restored: Value =
        serde_json::from_str(&result.restore(&written.to_string()).unwrap()).unwrap();
    assert_eq!(
        restored,
        json!({"a b": {"a b": "x", "ü": 1}, "a_b": 2, "a/b": [{"a/b": 3}], "": 4})
    );
}

#[test]
fn gemini_openapi_speaks_only_its_subset() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"], "format": "uri"},
            "b": {"const": "x"},
            "c": {"enum": [1, 2, null]},
            "d": {"anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"type": "null"}]},
            "e": {"type": ["string", "integer"]},
            "f": {"type": "object", "additionalProperties": {"type": "string"}, "propertyNames": {"minLength": 1}},
            "g": {"allOf": [{"type": "object", "properties": {"x": {"type": "array"}}}, {"required": ["x", "y"]}]}
        },
        "required": ["a", "gone"],
        "additionalProperties": false
    });
    assert_eq!(
        lowered(schema, Profile::GeminiOpenapi),
        json!({
            "type": "object",
            "properties": {
                "a": {"nullable": true, "type": "string", "description": "(format: uri)"},
                "b": {"enum": ["x"], "type": "string"},
                "c": {"nullable": true, "description": "(one of [1,2])"},
                "d": {"type": "integer", "nullable": true, "description": "(exclusiveMinimum: 0)"},
                "e": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                "f": {"type": "object", "properties": {}},
                "g": {"type": "object", "properties": {"x": {"type": "array", "items": {}}}, "required": ["x"]}
            },
            "required": ["a"]
        })
    );
}

#[test]
fn prose_is_cleaned_and_cut_longest_first() {
    let schema = json!({"type": "object", "description": "a\u{202e}b", "properties": {
        "long": {"type": "string", "description": "l".repeat(30_000)},
        "middle": {"type": "string", "description": "m".repeat(9_000)},
        "short": {"type": "string", "description": "s\u{200b}hort", "default": {"description": "d".repeat(100)}}
    }});
    let result = lowered(schema, Profile::Openai);
    assert_eq!(result["description"], "ab");
    let length = |name: &str| {
        result["properties"][name]["description"]
            .as_str()
            .unwrap()
            .len()
    };
    assert_eq!(length("short"), 5);
    assert!(
        length("long").abs_diff(length("middle")) <= 3,
        "both are cut to one length"
    );
    let size = result.to_string().len();
    assert!(
        (MAX_TOOL_BYTES - 20..=MAX_TOOL_BYTES).contains(&size),
        "{size}"
    );
}

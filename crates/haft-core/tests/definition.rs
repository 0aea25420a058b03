//! A definition is authoritative, frozen, and fails closed.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

use std::sync::Arc;

use haft_core::{
    Annotations, CustomKind, DefinitionError, NoSchemaMode, ToolDefinition, ToolKind, ToolName,
    ViewFormat,
};
use serde_json::{Value, json};

fn object() -> Value {
    json!({"type": "object", "properties": {"a": {"type": "string", "description": "An a"}}})
}

fn full() -> Arc<ToolDefinition> {
    ToolDefinition::builder("search")
        .description("Search the archive.\n\nSlow on Mondays.")
        .parameters(object())
        .output_schema(json!({"type": "array"}))
        .kind(ToolKind::Custom(CustomKind::new("acme:search").unwrap()))
        .strict(true)
        .annotations(Annotations {
            title: Some("Archive".into()),
            safe: Some(true),
            sequential: true,
            timeout_ms: Some(5_000),
            roles: vec!["clerk".into()],
            extra: [("x-team".to_owned(), json!("archive"))]
                .into_iter()
                .collect(),
            ..Annotations::default()
        })
        .tags(["archive", "text"])
        .read_only()
        .idempotent()
        .open_world()
        .example(json!({"a": "x"}), Some(json!(["hit"])))
        .depends_on(ToolName::new("open_archive").unwrap())
        .build()
        .unwrap()
}

#[test]
fn every_part_survives_the_json_form() {
    let definition = full();
    let json = definition.to_json();
    assert_eq!(
        json,
        json!({
            "type": "function",
            "name": "search",
            "description": "Search the archive.\n\nSlow on Mondays.",
            "parameters": object(),
            "outputSchema": {"type": "array"},
            "strict": true,
            "annotations": {
                "title": "Archive",
                "tags": ["archive", "text"],
                "safe": true,
                "read_only": true,
                "idempotent": true,
                "open_world": true,
                "sequential": true,
                "timeout_ms": 5000,
                "roles": ["clerk"],
                "examples": [{"input": {"a": "x"}, "output": ["hit"]}],
                "depends_on": ["open_archive"],
                "x-team": "archive"
            }
        })
    );
    let read = ToolDefinition::from_json(json).unwrap();
    assert_eq!(read.fingerprint(), definition.fingerprint());
    assert_eq!(read.brief(), "Search the archive.");
}

#[test]
fn a_definition_without_schema_and_opt_in_cannot_be_built() {
    let error = ToolDefinition::builder("x").build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "tool 'x' has no parameter schema; add one or set allowNoSchema with a noSchemaMode"
    );
    let error = ToolDefinition::from_json(json!({"name": "x"})).unwrap_err();
    assert!(matches!(error, DefinitionError::MissingSchema { .. }));
}

#[test]
fn the_opt_out_of_a_schema_names_its_mode() {
    for (text, mode) in [
        ("read-only", NoSchemaMode::ReadOnly),
        ("human-approval", NoSchemaMode::HumanApproval),
        ("full", NoSchemaMode::Full),
    ] {
        let json = json!({
            "type": "function", "name": "x", "allowNoSchema": true, "noSchemaMode": text
        });
        let definition = ToolDefinition::from_json(json.clone()).unwrap();
        assert_eq!(definition.no_schema_mode(), Some(mode));
        assert_eq!(definition.parameters(), None);
        assert_eq!(definition.to_json(), json);
        let view = definition.view(ViewFormat::Responses);
        assert_eq!(view["parameters"], json!({"type": "object"}));
    }
    let silent = json!({"name": "x", "allowNoSchema": true});
    assert!(matches!(
        ToolDefinition::from_json(silent),
        Err(DefinitionError::NoSchemaModeMissing { .. })
    ));
    let both = json!({
        "name": "x", "allowNoSchema": true, "noSchemaMode": "full", "parameters": object()
    });
    assert!(matches!(
        ToolDefinition::from_json(both),
        Err(DefinitionError::NoSchemaConflict { .. })
    ));
    let unasked = json!({"name": "x", "noSchemaMode": "full"});
    assert!(ToolDefinition::from_json(unasked).is_err());
    let misspelt = json!({"name": "x", "allowNoSchema": true, "noSchemaMode": "ful"});
    assert!(ToolDefinition::from_json(misspelt).is_err());
}

#[test]
fn unknown_keys_are_errors_and_free_metadata_has_its_place() {
    let unknown = json!({"name": "x", "parameters": object(), "paramters": {}});
    assert!(matches!(
        ToolDefinition::from_json(unknown),
        Err(DefinitionError::UnknownKey { key, .. }) if key == "paramters"
    ));
    let unknown = json!({"name": "x", "parameters": object(), "annotations": {"colour": "red"}});
    assert!(matches!(
        ToolDefinition::from_json(unknown),
        Err(DefinitionError::UnknownKey { key, .. }) if key == "colour"
    ));
    let free = json!({"name": "x", "parameters": object(), "annotations": {"x-colour": "red"}});
    assert!(ToolDefinition::from_json(free).is_ok());
}

#[test]
fn input_that_is_no_definition_is_refused_with_its_place() {
    for bad in [
        json!(null),
        json!([]),
        json!({"parameters": object()}),
        json!({"name": 7, "parameters": object()}),
        json!({"type": "mcp", "name": "x", "parameters": object()}),
        json!({"name": "x", "parameters": "object"}),
        json!({"name": "x", "parameters": object(), "strict": "yes"}),
        json!({"name": "x", "parameters": object(), "annotations": {"tags": "a"}}),
        json!({"name": "x y", "parameters": object()}),
        json!({"name": "x", "parameters": object(), "annotations": {"brief": "a\nb"}}),
        json!({"name": "x", "parameters": object(), "annotations": {"brief": "a".repeat(121)}}),
        json!({"name": "x", "parameters": object(), "annotations": {"timeout_ms": 0}}),
        json!({"name": "x", "parameters": object(), "annotations": {"depends_on": ["a b"]}}),
        json!({"name": "x", "parameters": object(), "description": "d".repeat(4097)}),
        json!({"name": "x", "parameters": object(), "outputSchema": 3}),
    ] {
        assert!(ToolDefinition::from_json(bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn the_seeds_shorthand_becomes_a_proper_schema() {
    let definition = ToolDefinition::from_json(json!({
        "type": "function",
        "name": "get_current_weather",
        "description": "Get the current weather for a given location",
        "parameters": {
            "location": {"type": "string", "description": "The name of the city"},
            "format": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            "required": ["location", "format"]
        }
    }))
    .unwrap();
    assert_eq!(
        definition.parameters(),
        Some(&json!({
            "type": "object",
            "properties": {
                "location": {"type": "string", "description": "The name of the city"},
                "format": {"type": "string", "enum": ["celsius", "fahrenheit"]}
            },
            "required": ["location", "format"]
        }))
    );
}

#[test]
fn the_fingerprint_follows_the_content_and_nothing_else() {
    let one = ToolDefinition::from_json(json!({
        "name": "x", "parameters": {"type": "object", "properties": {"a": {}, "b": {}}}
    }));
    let other_order = ToolDefinition::from_json(json!({
        "parameters": {"properties": {"b": {}, "a": {}}, "type": "object"}, "name": "x"
    }));
    let other_content = ToolDefinition::from_json(json!({
        "name": "x", "parameters": {"type": "object", "properties": {"a": {}, "c": {}}}
    }));
    let (one, other_order) = (one.unwrap(), other_order.unwrap());
    assert_eq!(one.fingerprint(), other_order.fingerprint());
    assert_ne!(one.fingerprint(), other_content.unwrap().fingerprint());
    assert_eq!(one.fingerprint().as_str().len(), 64);
    let elsewhere = one.of_kind(ToolKind::Mcp);
    assert_eq!(elsewhere.fingerprint(), one.fingerprint());
}

#[test]
fn a_renamed_tool_is_another_definition_that_knows_its_origin() {
    let definition = full();
    let renamed = definition.renamed(ToolName::new("archive__search").unwrap());
    assert_eq!(renamed.annotations().origin.as_deref(), Some("search"));
    assert_ne!(renamed.fingerprint(), definition.fingerprint());
    let again = renamed.renamed(ToolName::new("again").unwrap());
    assert_eq!(again.annotations().origin.as_deref(), Some("search"));
}

/// R31
#[test]
fn provider_views_are_copies_with_every_parameter_description() {
    let definition = full();
    let before = definition.fingerprint().clone();
    let name = json!({"name": "search", "description": "Search the archive.\n\nSlow on Mondays."});
    let nested = |mut function: Value| {
        function["parameters"] = object();
        json!({"type": "function", "function": function})
    };
    let mut strict = name.clone();
    strict["strict"] = json!(true);
    let views = [
        (
            ViewFormat::Responses,
            json!({
                "type": "function", "name": "search",
                "description": "Search the archive.\n\nSlow on Mondays.",
                "parameters": object(), "strict": true
            }),
        ),
        (ViewFormat::Chat, nested(strict)),
        (ViewFormat::Ollama, nested(name)),
        (
            ViewFormat::Anthropic,
            json!({
                "name": "search", "description": "Search the archive.\n\nSlow on Mondays.",
                "input_schema": object()
            }),
        ),
        (
            ViewFormat::Mcp,
            json!({
                "name": "search", "title": "Archive",
                "description": "Search the archive.\n\nSlow on Mondays.",
                "inputSchema": object(), "outputSchema": {"type": "array"},
                "annotations": {
                    "readOnlyHint": true, "destructiveHint": false,
                    "idempotentHint": true, "openWorldHint": true
                }
            }),
        ),
    ];
    for (format, expected) in views {
        let mut view = definition.view(format);
        assert_eq!(view, expected);
        assert!(view.to_string().contains("An a"));
        view["name"] = json!("changed");
    }
    assert_eq!(definition.name().as_str(), "search");
    assert_eq!(definition.fingerprint(), &before);
    assert_eq!(
        &ToolDefinition::from_json(definition.to_json())
            .unwrap()
            .fingerprint(),
        &&before
    );
}

#[test]
fn the_fingerprint_is_the_sha_256_of_the_canonical_json() {
    let definition = ToolDefinition::builder("x")
        .parameters(json!({"type": "object"}))
        .build()
        .unwrap();
    assert_eq!(
        definition.fingerprint().as_str(),
        "933f5fb97b2cd234d5ef3965c2279413452b612abf3e18a02e5fbb0c8f42b0e9"
    );
}

#[test]
fn error_texts_stay_short_whatever_was_given() {
    let long = "x".repeat(1_000_000);
    for bad in [
        json!({long.clone(): 1, "name": "x", "parameters": object()}),
        json!({"name": "x", "allowNoSchema": true, "noSchemaMode": long}),
        json!({"name": long, "parameters": object()}),
        json!({"name": "x", "parameters": {"type": "object", "$ref": "y".repeat(200_000)}}),
        json!({"name": "x", "parameters": object(), "annotations": {"y".repeat(9_999): 1}}),
    ] {
        let text = ToolDefinition::from_json(bad).unwrap_err().to_string();
        assert!(text.len() < 600, "{}", text.len());
    }
    let wrapped = json!({"type": "function", "function": {"name": "x"}});
    let text = ToolDefinition::from_json(wrapped).unwrap_err().to_string();
    assert!(text.contains("under `function`"), "{text}");
}

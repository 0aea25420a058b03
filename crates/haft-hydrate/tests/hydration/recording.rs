//! What the record keeps and what the model is told.

use haft_core::{
    CallSource, HydrationResult, NoSchemaMode, Provenance, Stage, ToolCall, ToolDefinition, Trust,
};
use haft_hydrate::{CallIds, Hydrator};
use serde_json::json;

use crate::common::*;

#[test]
fn a_batch_gives_one_result_per_call_in_order() {
    let schemaless = ToolDefinition::builder("anything")
        .no_schema(NoSchemaMode::HumanApproval)
        .build()
        .unwrap();
    let tools = table([echo(weather()), echo(schemaless)]);
    let calls = [
        ToolCall::new("get_current_weather", r#"{"location":"Oslo"}"#).with_id("a"),
        ToolCall::new("no_such_tool", r#"{"x":1}"#).with_id("a"),
        ToolCall::new("get_current_weather", "not json"),
        ToolCall::new("anything", r#"{"free": ["form"]}"#).with_id("b"),
        ToolCall::new("anything", "[]"),
    ];
    let results = Hydrator::new().hydrate_all(&calls, &tools[..], &mut CallIds::default());
    let successes: Vec<_> = results.iter().map(HydrationResult::success).collect();
    assert_eq!(successes, [true, false, false, true, false]);
    let ids: Vec<_> = results
        .iter()
        .map(|result| result.provenance.call_id.as_str())
        .collect();
    assert_eq!(ids, ["a", "call_1", "call_2", "b", "call_3"]);

    assert_eq!(messages(&results[1]), ["unknown tool 'no_such_tool'"]);
    assert_eq!(results[1].errors[0].stage, Stage::Instantiate);
    assert_eq!(results[1].provenance.parsed, Some(json!({"x": 1})));
    assert_eq!(results[1].provenance.tool_name, None);

    let free = &results[3].provenance;
    assert_eq!(results[3].trust(), Trust::Unvalidated);
    assert_eq!(
        (free.validator.clone(), free.validated.clone()),
        (None, None)
    );
    assert_eq!(free.no_schema_mode, Some(NoSchemaMode::HumanApproval));
}

#[test]
fn the_json_form_is_the_one_of_the_reference() {
    let tools = table([echo(weather())]);
    let call = ToolCall::new("get_current_weather", " {\"unit\":\"kelvin\"} ")
        .with_id("call_1")
        .from_source(CallSource {
            provider: "openai".into(),
            model: "gpt".into(),
            ..CallSource::default()
        });
    let result = Hydrator::new().hydrate(&call, &tools[..], &mut CallIds::default());
    let mut json = result.to_json();
    let provenance = json["provenance"].as_object_mut().unwrap();
    let at = provenance.remove("at").unwrap();
    assert!(at.as_str().unwrap().ends_with('Z'), "{at}");
    assert!(
        provenance["validator"]
            .as_object_mut()
            .unwrap()
            .remove("elapsedUs")
            .is_some()
    );
    assert_eq!(
        json,
        json!({
            "tool": null,
            "success": false,
            "errors": [
                {
                    "stage": "validate",
                    "message": "missing field 'location'",
                    "detail": {"code": "invalid", "path": "", "keyword": "required"}
                },
                {
                    "stage": "validate",
                    "message": "'unit' must be one of celsius, fahrenheit",
                    "detail": {
                        "code": "invalid", "path": "/unit", "keyword": "enum",
                        "expected": "celsius, fahrenheit", "actual": "kelvin"
                    }
                }
            ],
            "provenance": {
                "providerToolId": "get_current_weather",
                "callId": "call_1",
                "toolName": "get_current_weather",
                "definitionFingerprint": weather().fingerprint(),
                "originalRawArgs": " {\"unit\":\"kelvin\"} ",
                "parsed": {"unit": "kelvin"},
                "validator": {
                    "name": "haft-jsonschema",
                    "version": env!("CARGO_PKG_VERSION"),
                    "compiledAt": "registration"
                },
                "repaired": false,
                "source": {"provider": "openai", "model": "gpt"}
            }
        })
    );
}

#[test]
fn the_model_reads_what_is_wrong_and_no_more() {
    let deep = format!("{{\"location\":{}", "[".repeat(200));
    let large = format!("{{\"location\":\"{}\"}}", "x".repeat(1024 * 1024));
    for (text, told) in [
        (
            "{\"location\": oops}",
            "arguments are not valid JSON (line 1, column 14).",
        ),
        (
            "{\"location\": \"Os",
            "the arguments were cut off. Send the call again.",
        ),
        (
            "{\"days\":1,\"days\":2}",
            "key 'days' occurs twice in the arguments.",
        ),
        (deep.as_str(), "arguments are nested deeper than 128."),
        (large.as_str(), "arguments are larger than 1048576 bytes."),
        ("[]", "arguments must be a JSON object."),
        (
            "{\"days\":\"x\"}",
            "invalid arguments: 'days' must be integer, got string; missing field 'location'",
        ),
    ] {
        let expected = format!("Tool 'get_current_weather': {told}");
        assert_eq!(hydrate(text).text_for_model(), Some(expected.clone()));
        assert_eq!(
            repair(text).text_for_model(),
            Some(expected),
            "also after a failed repair"
        );
    }
    assert_eq!(hydrate(r#"{"location":"Oslo"}"#).text_for_model(), None);
}

#[test]
fn a_record_survives_storage() {
    for result in [
        hydrate(r#"{"location":"Oslo"}"#),
        hydrate("broken"),
        repair(r#"{"location": "Oslo", "days": "3",}"#),
    ] {
        let stored = serde_json::to_string(&result.provenance).unwrap();
        let read: Provenance = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, result.provenance);
    }
}

#[test]
fn at_most_8_errors_are_told_and_32_kept() {
    let required: Vec<_> = (10..60).map(|n| format!("f{n}")).collect();
    let definition = ToolDefinition::builder("many")
        .parameters(json!({"type": "object", "required": required}))
        .build()
        .unwrap();
    let tools = table([echo(definition)]);
    let result = Hydrator::new().hydrate(
        &ToolCall::new("many", "{}"),
        &tools[..],
        &mut CallIds::default(),
    );
    assert_eq!(result.errors.len(), 32);
    let told = result.text_for_model().unwrap();
    assert_eq!(told.matches("missing field").count(), 8);
    assert!(told.starts_with("Tool 'many': invalid arguments: missing field 'f10'; "));
}

#[test]
fn a_union_is_explained_by_the_branch_that_was_meant() {
    let definition = ToolDefinition::builder("union")
        .parameters(json!({"type": "object", "properties": {
            "x": {"anyOf": [
                {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}, "required": ["m"]},
                {"type": "null"}
            ]},
            "y": {"type": "string", "pattern": "^a"}
        }}))
        .build()
        .unwrap();
    let tools = table([echo(definition)]);
    let call = ToolCall::new("union", r#"{"x": {"n": 1}, "y": "b"}"#);
    let result = Hydrator::new().hydrate(&call, &tools[..], &mut CallIds::default());
    assert_eq!(
        messages(&result),
        [
            "missing field 'x.m'",
            "'x.n' must be at least 3",
            "'y' must match the pattern ^a"
        ]
    );
}

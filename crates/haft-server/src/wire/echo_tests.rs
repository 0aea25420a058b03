use serde_json::json;

use super::*;
use crate::wire::read::{Door, Vocabulary};

fn begun(body: Value) -> Value {
    let request = CreateRequest::read(body, Door::Http, &Vocabulary::default()).unwrap();
    let resource = ResponseResource::begun("resp_1", 1_700_000_000, "public", &request);
    serde_json::to_value(resource).unwrap()
}

/// A request that says something in every field.
fn everything() -> Value {
    json!({
        "model": "alias", "input": "hi", "instructions": "be kind",
        "previous_response_id": "resp_0",
        "tools": [{"type": "function", "name": "ping"}],
        "tool_choice": {"type": "allowed_tools", "tools": [{"type": "function", "name": "ping"}]},
        "parallel_tool_calls": false, "max_tool_calls": 3, "max_output_tokens": 100,
        "temperature": 0, "top_p": 0.5, "presence_penalty": -1.0, "frequency_penalty": 2,
        "top_logprobs": 5, "truncation": "auto", "background": true,
        "text": {"format": {"type": "json_object"}, "verbosity": "high"},
        "reasoning": {"effort": "low"}, "metadata": {"k": "v"}, "service_tier": "flex",
        "safety_identifier": "s", "prompt_cache_key": "p",
    })
}

#[test]
fn a_plain_request_is_echoed_with_its_defaults() {
    insta::assert_json_snapshot!(begun(json!({"input": "hi"})));
}

#[test]
fn a_request_that_says_everything_is_echoed_as_it_said() {
    insta::assert_json_snapshot!(begun(everything()));
}

#[test]
fn every_field_is_there_whatever_was_said() {
    for body in [json!({"input": "hi"}), everything()] {
        assert_eq!(begun(body).as_object().unwrap().len(), 31);
    }
}

#[test]
fn numbers_are_echoed_as_they_were_written() {
    let numbers = |body: Value| begun(body)["temperature"].to_string();
    assert_eq!(numbers(json!({"input": ""})), "1");
    assert_eq!(numbers(json!({"input": "", "temperature": 0})), "0");
    assert_eq!(numbers(json!({"input": "", "temperature": 1.0})), "1.0");
    assert_eq!(numbers(json!({"input": "", "temperature": 0.7})), "0.7");
}

#[test]
fn a_schema_is_echoed_whole() {
    let text = begun(
        json!({"input": "", "text": {"format": {"type": "json_schema", "name": "n",
        "schema": {"type": "object"}}}}),
    )["text"]
        .clone();
    assert_eq!(
        text,
        json!({"format": {"type": "json_schema", "name": "n", "description": null,
            "schema": {"type": "object"}, "strict": false}})
    );
}

#[test]
fn both_members_of_reasoning_are_there_and_others_are_kept() {
    let reasoning =
        |given: Value| begun(json!({"input": "", "reasoning": given}))["reasoning"].clone();
    assert_eq!(reasoning(Value::Null), Value::Null);
    assert_eq!(
        reasoning(json!({})),
        json!({"effort": null, "summary": null})
    );
    assert_eq!(
        reasoning(json!({"effort": "minimal", "summary": null, "context": "x", "y": null})),
        json!({"effort": "minimal", "summary": null, "context": "x"})
    );
}

#[test]
fn the_tier_is_the_one_that_is_used() {
    let tier =
        |given: Value| begun(json!({"input": "", "service_tier": given}))["service_tier"].clone();
    assert_eq!(tier(Value::Null), "default");
    assert_eq!(tier(json!("auto")), "default");
    assert_eq!(tier(json!("priority")), "priority");
}

#[test]
fn a_conversation_is_shown_only_where_one_is_used() {
    assert!(begun(json!({"input": ""})).get("conversation").is_none());
    for conversation in [json!("conv_1"), json!({"id": "conv_1"})] {
        let resource = begun(json!({"input": "", "conversation": conversation}));
        assert_eq!(resource["conversation"], json!({"id": "conv_1"}));
    }
}

#[test]
fn what_is_stored_is_read_back_as_the_same() {
    for body in [json!({"input": "hi"}), everything()] {
        let request = CreateRequest::read(body, Door::Http, &Vocabulary::default()).unwrap();
        let resource = ResponseResource::begun("resp_1", 1, "m", &request);
        let json = serde_json::to_string(&resource).unwrap();
        let back: ResponseResource = serde_json::from_str(&json).unwrap();
        assert_eq!(back, resource);
    }
}

/// The specification, where it lies beside this repository.
fn specification() -> Option<Value> {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/data/openresponses/openapi.json"
    );
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

#[test]
fn what_is_echoed_fits_the_specification() {
    let Some(specification) = specification() else {
        println!("skipped: the specification is not there");
        return;
    };
    let schema = json!({
        "$ref": "#/components/schemas/ResponseResource",
        "components": specification["components"],
    });
    let validator = jsonschema::validator_for(&schema).unwrap();
    for body in [
        json!({"input": "hi"}),
        everything(),
        json!({"input": "hi", "tools": [{"type": "function", "name": "ping", "parameters": {},
            "defer_loading": false}], "tool_choice": {"type": "function", "name": "ping"}}),
        json!({"input": "hi", "reasoning": {}, "text": {"format": null}, "conversation": "conv_1"}),
        json!({"input": "hi", "tool_choice": "required", "temperature": 0.3}),
    ] {
        let resource = begun(body);
        let errors: Vec<_> = validator
            .iter_errors(&resource)
            .map(|e| e.to_string())
            .collect();
        assert!(errors.is_empty(), "{resource:#}: {errors:?}");
    }
    let mut broken = begun(json!({"input": "hi"}));
    broken["metadata"] = Value::Null;
    broken["temperature"] = Value::Null;
    assert!(!validator.is_valid(&broken));
}

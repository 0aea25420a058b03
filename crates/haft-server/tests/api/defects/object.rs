//! The response object (lines 27 to 29).

use haft_models::ScriptedModel;
use haft_models::testing::{call, say};
use serde_json::{Value, json};

use crate::support::{Setup, function, last, serve};
use crate::tools::echo;

/// The test that a field's type must pass.
type HasType = fn(&Value) -> bool;

/// Every field with its test.
const FIELDS: [(&str, HasType); 31] = [
    ("id", is_text),
    ("object", is_text),
    ("created_at", Value::is_i64),
    ("completed_at", Value::is_i64),
    ("status", is_text),
    ("incomplete_details", Value::is_null),
    ("model", is_text),
    ("previous_response_id", Value::is_null),
    ("instructions", Value::is_null),
    ("output", Value::is_array),
    ("error", Value::is_null),
    ("tools", Value::is_array),
    ("tool_choice", is_text),
    ("truncation", is_text),
    ("parallel_tool_calls", Value::is_boolean),
    ("text", Value::is_object),
    ("top_p", Value::is_number),
    ("presence_penalty", Value::is_number),
    ("frequency_penalty", Value::is_number),
    ("top_logprobs", Value::is_u64),
    ("temperature", Value::is_number),
    ("reasoning", Value::is_null),
    ("usage", Value::is_object),
    ("max_output_tokens", Value::is_null),
    ("max_tool_calls", Value::is_null),
    ("store", Value::is_boolean),
    ("background", Value::is_boolean),
    ("service_tier", is_text),
    ("metadata", Value::is_object),
    ("safety_identifier", Value::is_null),
    ("prompt_cache_key", Value::is_null),
];

fn is_text(value: &Value) -> bool {
    value.is_string()
}

#[track_caller]
fn check(response: &Value) {
    for (field, has_type) in FIELDS {
        let value = response
            .get(field)
            .unwrap_or_else(|| panic!("no `{field}`"));
        assert!(has_type(value), "`{field}` is {value}");
    }
    // Nothing that nobody asked for.
    assert_eq!(response.as_object().unwrap().len(), FIELDS.len());
    let part = &response["output"][0]["content"][0];
    assert_eq!(part["annotations"], json!([]));
    assert_eq!(part["logprobs"], json!([]));
}

/// §11.27
#[tokio::test]
async fn all_fields_are_there_with_their_types() {
    let (served, _) = serve([say("one"), say("two")]).await;
    let plain = served.create(json!({"input": "go"})).await;
    check(&plain);
    check(&served.stored(&plain["id"]).await);
    check(last(&served.stream(json!({"input": "go"})).await));
}

/// §11.28
#[tokio::test]
async fn defaults_are_shown_as_what_they_are() {
    let (served, _) = serve([say("one")]).await;
    let plain = served.create(json!({"input": "go"})).await;
    let shown: Vec<_> = [
        "temperature",
        "top_p",
        "presence_penalty",
        "frequency_penalty",
    ]
    .map(|key| plain[key].as_f64().unwrap())
    .into();
    assert_eq!(shown, [1.0, 1.0, 0.0, 0.0]);
    assert_eq!(plain["text"], json!({"format": {"type": "text"}}));
    assert_eq!(plain["tool_choice"], "auto");
    assert_eq!(plain["truncation"], "disabled");
    assert_eq!(plain["service_tier"], "default");
    assert_eq!(plain["metadata"], json!({}));
    assert_eq!(
        (&plain["store"], &plain["background"]),
        (&json!(true), &json!(false))
    );
}

/// §11.28
#[tokio::test]
async fn what_was_given_is_shown_and_nothing_of_the_backend() {
    let (served, _) = serve([say("{\"n\":1}")]).await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}},
        "required": ["n"], "additionalProperties": false});
    let given = json!({
        "input": "go", "model": "default", "temperature": 0, "top_p": 0, "top_logprobs": 0,
        "max_output_tokens": 500, "max_tool_calls": 3, "instructions": "be kind",
        "reasoning": {"effort": "low"}, "metadata": {"a": "b"}, "truncation": "auto",
        "text": {"format": {"type": "json_schema", "name": "n", "schema": schema}},
        "parallel_tool_calls": false, "safety_identifier": "s", "prompt_cache_key": "k",
        "tools": [{"type": "function", "name": "look"}],
    });
    let shown = served.create(given.clone()).await;
    for key in [
        "model",
        "max_output_tokens",
        "max_tool_calls",
        "instructions",
        "metadata",
        "truncation",
        "parallel_tool_calls",
        "safety_identifier",
        "prompt_cache_key",
    ] {
        assert_eq!(shown[key], given[key], "{key}");
    }
    assert_eq!(shown["temperature"].as_f64(), Some(0.0));
    assert_eq!(
        shown["reasoning"],
        json!({"effort": "low", "summary": null})
    );
    let format = json!({"type": "json_schema", "name": "n", "description": null, "strict": false,
        "schema": schema});
    assert_eq!(shown["text"]["format"], format);
    let tool = json!({"type": "function", "name": "look", "description": null,
        "parameters": null, "strict": false});
    assert_eq!(shown["tools"], json!([tool]));
}

/// §11.29
#[tokio::test]
async fn the_status_depends_on_the_request_alone() {
    let script = || [call("look", json!({})).forever()];
    let (plain, _) = serve(script()).await;
    let setup = Setup::of(ScriptedModel::new(script()));
    let equipped = setup.tools([echo("echo").0]).serve().await;
    let ask = json!({"input": "go", "tools": [function("look")]});
    for served in [&plain, &equipped] {
        assert_eq!(served.create(ask.clone()).await["status"], "completed");
    }
    // One that declares a tool of the server waits for its client, which one dialect has a status for.
    let ask = json!({"input": "go", "tools": [function("look"), {"type": "haft:echo"}]});
    let response = equipped.create(ask.clone()).await;
    assert_eq!(response["status"], "completed");
    let request = equipped
        .posting("/responses", &ask)
        .header("haft-dialect", "open-responses");
    let response = equipped.send(request).await.ok();
    assert_eq!(response["status"], "requires_action");
    // The dialect is the reader's, not the record's.
    assert_eq!(
        equipped.stored(&response["id"]).await["status"],
        "completed"
    );
}

//! Each row of the table of fields: what it takes, what it refuses, and what it means when absent.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::refusals::{check_refused, rows};
use super::*;
use crate::error::ErrorCode;
use crate::wire::request::{CreateRequest, Include, InputItem, TextFormat, Truncation, WireChoice};

fn read(body: &Value, door: Door) -> Read<CreateRequest> {
    CreateRequest::read(body.clone(), door, &Vocabulary::default())
}

/// A body with these members and an `input`.
fn body(members: &Value) -> Value {
    let mut body = json!({"model": "m", "input": "hi"});
    for (key, value) in members.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

fn accepted(members: &Value) -> CreateRequest {
    read(&body(members), Door::Http).unwrap_or_else(|error| panic!("{members}: {error:?}"))
}

#[track_caller]
fn refused(body: &Value, door: Door, code: &str, param: &str) {
    check_refused(read(body, door), body, code, param);
}

#[test]
fn what_is_absent_or_null_has_its_default() {
    let all = [
        "instructions",
        "previous_response_id",
        "conversation",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_tool_calls",
        "max_output_tokens",
        "temperature",
        "top_p",
        "presence_penalty",
        "frequency_penalty",
        "top_logprobs",
        "text",
        "reasoning",
        "include",
        "store",
        "stream",
        "stream_options",
        "background",
        "truncation",
        "metadata",
        "service_tier",
        "safety_identifier",
        "prompt_cache_key",
        "context_management",
    ];
    let mut nulls = json!({});
    for field in all {
        nulls[field] = Value::Null;
    }
    for members in [json!({}), nulls] {
        let request = accepted(&members);
        assert_eq!(request.model.as_deref(), Some("m"));
        assert_eq!(request.instructions, None);
        assert_eq!(request.previous_response_id, None);
        assert_eq!(request.conversation, None);
        assert_eq!(request.tools, []);
        assert_eq!(request.tool_choice, WireChoice::Auto);
        assert!(request.parallel_tool_calls && request.store && request.generate);
        assert!(!request.stream && !request.background);
        assert_eq!(request.max_tool_calls, None);
        assert_eq!(request.max_output_tokens, None);
        assert_eq!((request.temperature, request.top_p), (None, None));
        assert_eq!(
            (request.presence_penalty, request.frequency_penalty),
            (None, None)
        );
        assert_eq!(request.top_logprobs, None);
        assert_eq!(request.text.format, TextFormat::Text);
        assert_eq!(request.text.verbosity, None);
        assert_eq!(request.reasoning, None);
        assert_eq!(request.include, Include::default());
        assert_eq!(request.truncation, Truncation::Disabled);
        assert!(request.metadata.is_empty());
        assert_eq!(request.service_tier, None);
        assert_eq!(request.safety_identifier, None);
        assert_eq!(request.prompt_cache_key, None);
        assert_eq!(request.compact_threshold, None);
    }
    assert_eq!(
        read(&json!({"input": "hi"}), Door::Http).unwrap().model,
        None
    );
}

#[test]
fn what_is_given_is_taken() {
    let request = accepted(&json!({
        "instructions": "be kind", "previous_response_id": "resp_1",
        "parallel_tool_calls": false, "max_tool_calls": 1, "max_output_tokens": 16.0,
        "temperature": 2, "top_p": 1, "presence_penalty": -2, "frequency_penalty": 2.0,
        "top_logprobs": 20, "include": ["reasoning.encrypted_content", "web_search_call.results"],
        "store": true, "stream": true, "stream_options": {"include_obfuscation": true},
        "background": true, "truncation": "auto", "metadata": {"k": "v"},
        "service_tier": "tomorrow", "safety_identifier": "s", "prompt_cache_key": "p",
        "context_management": [{"type": "compaction", "compact_threshold": 1000}],
        "reasoning": {"effort": "max", "summary": "auto", "context": "x"},
        "text": {"format": {"type": "json_object"}, "verbosity": "low"},
    }));
    assert_eq!(request.instructions.as_deref(), Some("be kind"));
    assert_eq!(request.previous_response_id.as_deref(), Some("resp_1"));
    assert!(!request.parallel_tool_calls && request.stream && request.background);
    assert_eq!(request.max_tool_calls, Some(1));
    assert_eq!(request.max_output_tokens, Some(16));
    assert_eq!((request.temperature, request.top_p), (Some(2.0), Some(1.0)));
    assert_eq!(request.presence_penalty, Some(-2.0));
    assert_eq!(request.frequency_penalty, Some(2.0));
    assert_eq!(request.top_logprobs, Some(20));
    assert!(request.include.encrypted_reasoning && !request.include.logprobs);
    assert_eq!(request.truncation, Truncation::Auto);
    assert_eq!(request.metadata["k"], "v");
    assert_eq!(request.service_tier.as_deref(), Some("tomorrow"));
    assert_eq!(request.compact_threshold, Some(1000));
    let reasoning = request.reasoning.unwrap();
    assert_eq!(reasoning.effort.as_deref(), Some("max"));
    assert_eq!(reasoning.summary.as_deref(), Some("auto"));
    assert_eq!(reasoning.extra["context"], "x");
    assert_eq!(request.text.format, TextFormat::JsonObject);
    assert_eq!(request.text.verbosity.as_deref(), Some("low"));
}

#[test]
fn each_field_refuses_what_it_cannot_be() {
    for (members, code, param) in rows(include_str!("refusals/create.txt")) {
        refused(&body(&members), Door::Http, code, param);
    }
}

#[test]
fn a_long_key_of_metadata_is_refused_without_being_repeated() {
    let key = "k".repeat(10_000);
    let error = read(&body(&json!({"metadata": {key: "v"}})), Door::Http).unwrap_err();
    assert_eq!(error.code, ErrorCode::StringAboveMaxLength);
    assert!(error.param.unwrap().len() < 400);
}

#[test]
fn lengths_count_characters() {
    let request = accepted(&json!({"prompt_cache_key": "é".repeat(64)}));
    assert_eq!(request.prompt_cache_key.unwrap().chars().count(), 64);
}

#[test]
fn a_body_that_is_no_object_is_refused() {
    for body in [json!(null), json!([]), json!("x"), json!(1)] {
        let error = read(&body, Door::Http).unwrap_err();
        assert_eq!((error.code, error.param), (ErrorCode::InvalidType, None));
    }
}

#[test]
fn members_without_effect_are_accepted_and_named() {
    let request = accepted(&json!({
        "user": 5, "prompt_cache_retention": {}, "prompt_cache_options": [], "moderation": 1,
        "client_metadata": "x", "image": null, "access_programs": false, "stream_id": 7,
        "generate": "x", "something_new": {"a": [1]}, "text": {"verbosity": "low", "tone": "warm"},
        "reasoning": {"effort": "low", "generate_summary": "auto", "context": "all"},
        "include": ["reasoning.encrypted_content", "web_search_call.results"],
        "stream_options": {"include_obfuscation": false, "include_usage": true},
    }));
    let mut ignored = request.ignored;
    ignored.sort_unstable();
    assert_eq!(
        ignored,
        [
            "access_programs",
            "client_metadata",
            "generate",
            "include[web_search_call.results]",
            "moderation",
            "prompt_cache_options",
            "prompt_cache_retention",
            "reasoning.context",
            "something_new",
            "stream_id",
            "stream_options.include_usage",
            "text.tone",
            "user",
        ]
    );
    assert!(
        accepted(&json!({"text": {}, "user": null}))
            .ignored
            .is_empty()
    );
}

#[test]
fn user_stands_for_a_missing_safety_identifier() {
    let request = accepted(&json!({"user": "u1"}));
    assert_eq!(request.safety_identifier.as_deref(), Some("u1"));
    assert!(request.ignored.is_empty());
    let request = accepted(&json!({"user": "u1", "safety_identifier": "s1"}));
    assert_eq!(request.safety_identifier.as_deref(), Some("s1"));
    assert_eq!(request.ignored, ["user"]);
    let request = accepted(&json!({"user": "x".repeat(65)}));
    assert_eq!(
        (request.safety_identifier, request.ignored),
        (None, vec!["user".to_owned()])
    );
}

#[test]
fn parameters_of_chat_completions_are_refused() {
    for (name, value, code) in [
        (
            "response_format",
            json!({"type": "json_object"}),
            "unsupported_parameter",
        ),
        ("max_tokens", json!(5), "unsupported_parameter"),
        ("max_completion_tokens", json!(5), "unsupported_parameter"),
        ("messages", json!([]), "unsupported_parameter"),
        ("reasoning_effort", json!("low"), "unsupported_parameter"),
        ("prompt", json!({"id": "pmpt_1"}), "unsupported_parameter"),
        ("stop", json!(["END"]), "unknown_parameter"),
        ("seed", json!(1), "unknown_parameter"),
        ("n", json!(1), "unknown_parameter"),
        ("logit_bias", json!({}), "unknown_parameter"),
    ] {
        let mut given = json!({});
        given[name] = value;
        for door in [Door::Http, Door::WebSocket, Door::InputTokens] {
            refused(&body(&given), door, code, name);
        }
        given[name] = json!(null);
        accepted(&given);
    }
}

#[test]
fn input_is_required_unless_something_else_gives_the_context() {
    let missing = "missing_required_parameter";
    for body in [json!({}), json!({"input": null}), json!({"input": []})] {
        refused(&body, Door::Http, missing, "input");
        refused(&body, Door::WebSocket, missing, "input");
        refused(&body, Door::InputTokens, missing, "input");
    }
    // Outside a WebSocket the field means nothing.
    refused(&json!({"generate": false}), Door::Http, missing, "input");
    for body in [
        json!({"previous_response_id": "resp_1"}),
        json!({"conversation": "conv_1"}),
        json!({"conversation": {"id": "conv_1"}, "input": []}),
    ] {
        read(&body, Door::Http).unwrap();
    }
    let warm = read(&json!({"generate": false}), Door::WebSocket).unwrap();
    assert!(!warm.generate && warm.input.is_none());
}

#[test]
fn what_excludes_each_other_is_refused() {
    refused(
        &body(&json!({"previous_response_id": "resp_1", "conversation": "conv_1"})),
        Door::Http,
        "invalid_value",
        "previous_response_id",
    );
    refused(
        &body(&json!({"background": true, "store": false})),
        Door::Http,
        "invalid_value",
        "background",
    );
    accepted(&json!({"background": false, "store": false}));
}

#[test]
fn a_websocket_ignores_how_to_stream_and_refuses_the_background() {
    let request = body(
        &json!({"type": "response.create", "stream": "x", "stream_options": 1,
        "stream_id": "s1", "background": false}),
    );
    let request = read(&request, Door::WebSocket).unwrap();
    assert!(!request.stream);
    assert_eq!(request.stream_id.as_deref(), Some("s1"));
    refused(
        &body(&json!({"background": true})),
        Door::WebSocket,
        "unsupported_parameter",
        "background",
    );
    for (field, value) in [("generate", json!(1)), ("stream_id", json!(1))] {
        let request = body(&json!({field: value}));
        refused(&request, Door::WebSocket, "invalid_type", field);
    }
}

#[test]
fn compaction_needs_a_model_and_something_to_compact() {
    let missing = "missing_required_parameter";
    refused(&json!({"input": "hi"}), Door::Compact, missing, "model");
    refused(&json!({"model": "m"}), Door::Compact, missing, "input");
    read(
        &json!({"model": "m", "previous_response_id": "r"}),
        Door::Compact,
    )
    .unwrap();
    let codex = json!({"model": "m", "input": [], "previous_response_id": "r", "tools": [],
        "parallel_tool_calls": true, "reasoning": {"effort": "high"}, "text": {},
        "service_tier": "auto", "temperature": 99, "store": false, "include": ["?"]});
    read(&codex, Door::Compact).unwrap();
    for field in ["stream", "background"] {
        let request = body(&json!({field: true}));
        refused(&request, Door::Compact, "unsupported_parameter", field);
        read(&body(&json!({field: false})), Door::Compact).unwrap();
    }
    let request = body(&json!({"conversation": "conv_1"}));
    refused(
        &request,
        Door::Compact,
        "unsupported_parameter",
        "conversation",
    );
}

#[test]
fn counting_tokens_knows_no_sampling() {
    let request = body(
        &json!({"temperature": 99, "background": true, "store": false,
        "max_output_tokens": 1, "metadata": 5}),
    );
    assert_eq!(read(&request, Door::InputTokens).unwrap().temperature, None);
    let request = body(&json!({"reasoning": {"effort": "huge"}}));
    refused(
        &request,
        Door::InputTokens,
        "invalid_value",
        "reasoning.effort",
    );
}

#[test]
fn a_json_schema_format_is_read_also_in_its_short_forms() {
    let format = |format: Value| accepted(&json!({"text": {"format": format}})).text.format;
    assert_eq!(
        format(json!({"type": "json_schema"})),
        TextFormat::JsonObject
    );
    assert_eq!(
        format(json!({"type": "json_schema", "name": "n"})),
        TextFormat::JsonObject
    );
    assert_eq!(
        format(json!({"type": "json_schema", "schema": {"type": "object"}, "strict": null})),
        TextFormat::JsonSchema {
            name: String::from("response"),
            description: None,
            schema: json!({"type": "object"}),
            strict: false,
        }
    );
    assert_eq!(
        format(
            json!({"type": "json_schema", "name": "n", "description": "d", "schema": {},
            "strict": true})
        ),
        TextFormat::JsonSchema {
            name: String::from("n"),
            description: Some(String::from("d")),
            schema: json!({}),
            strict: true,
        }
    );
}

#[test]
fn a_text_is_one_message_of_the_user_word_for_word() {
    for text in ["hi", "", " a\nb\u{0} "] {
        let request = read(&json!({"input": text}), Door::Http).unwrap();
        let [InputItem::Item(record)] = &request.input.unwrap()[..] else {
            panic!("one item");
        };
        assert_eq!(record.param, "input");
        assert_eq!(
            serde_json::to_value(&record.item).unwrap(),
            json!({"type": "message", "id": record.id, "status": "completed", "role": "user",
                "content": [{"type": "input_text", "text": text}]})
        );
    }
}

/// JSON that may be anything, and often is nearly what is wanted.
fn nearly() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "",
        "x",
        "auto",
        "message",
        "function",
        "user",
        "assistant",
        "input_text",
        "output_text",
        "mcp",
        "namespace",
        "custom",
        "tool_search",
        "allowed_tools",
        "reasoning",
        "compaction",
        "function_call",
        "function_call_output",
        "input_image",
        "data:,x",
        "https://a/b?c",
        "additional_tools",
        "tool_search_output",
        "mcp_call",
        "json_schema",
        "haft:clock",
    ]);
    let kind = word.clone();
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "type",
        "id",
        "role",
        "content",
        "text",
        "status",
        "call_id",
        "name",
        "arguments",
        "output",
        "summary",
        "encrypted_content",
        "tools",
        "parameters",
        "server_label",
        "server_url",
        "headers",
        "format",
        "schema",
        "mode",
        "image_url",
        "file_data",
        "namespace",
        "x",
        "defer_loading",
        "execution",
        "require_approval",
        "allowed_tools",
        "authorization",
    ]);
    leaf.prop_recursive(5, 64, 6, move |inner| {
        let members = prop::collection::hash_map(key.clone(), inner.clone(), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            (members, prop::option::weighted(0.8, kind.clone())).prop_map(|(members, kind)| {
                let mut object = json!(members);
                if let Some(kind) = kind {
                    object["type"] = kind.into();
                }
                object
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_body_is_read_or_refused(
        value in nearly(),
        field in prop::sample::select(vec![
            "input", "tools", "tool_choice", "text", "reasoning", "metadata", "include",
            "conversation", "context_management", "temperature", "max_output_tokens",
        ]),
        in_list in any::<bool>(),
    ) {
        let value = if in_list { json!([value]) } else { value };
        for door in [Door::Http, Door::WebSocket, Door::Compact, Door::InputTokens] {
            let _ = read(&value, door);
            if let Err(error) = read(&json!({"model": "m", field: value.clone()}), door) {
                prop_assert!(error.param.is_some(), "{error}");
                prop_assert!(error.message.len() < 2000, "{error}");
            }
        }
    }

    #[test]
    fn what_was_read_once_is_read_again_as_the_same(value in nearly()) {
        let words = Vocabulary::default();
        let Ok(items) = InputItem::read_list(json!([value]), "input", &words) else {
            return Ok(());
        };
        let Some(InputItem::Item(record)) = items.first() else {
            return Ok(());
        };
        let json = serde_json::to_value(&record.item).unwrap();
        let again = InputItem::read_list(json!([json]), "input", &words).unwrap();
        let Some(InputItem::Item(again)) = again.first() else {
            panic!("still an item");
        };
        prop_assert_eq!(&again.item, &record.item);
        prop_assert_eq!(&again.id, &record.id);
    }
}

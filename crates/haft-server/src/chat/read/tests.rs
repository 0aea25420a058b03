use haft_core::{Capabilities, Item, ToolChoice};
use haft_models::ScriptedModel;
use haft_models::testing::Step;
use serde_json::{Value, json};

use super::*;
use crate::wire::read::refusals::{check_refused, rows};

fn read(body: Value) -> ChatRequest {
    ChatRequest::read(body, "test").unwrap()
}

fn conversation(messages: &Value) -> Value {
    let read = read(json!({"messages": messages}));
    serde_json::to_value(&read.request.conversation).unwrap()
}

/// A request as JSON, tools and all.
fn shown(request: &ModelRequest) -> Value {
    let tools = request.tools.iter().map(|tool| {
        let tool = tool.definition();
        json!({
            "name": tool.name().as_str(),
            "description": tool.description(),
            "parameters": tool.parameters(),
            "strict": tool.strict(),
        })
    });
    json!({
        "conversation": request.conversation,
        "tools": tools.collect::<Value>(),
        "tool_choice": request.tool_choice,
        "parallel_tool_calls": request.parallel_tool_calls,
    })
}

#[test]
fn every_kind_of_message_keeps_its_place_and_its_words() {
    let body = json!({
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "name": "ada", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
                {"type": "image_url", "image_url": "https://example.com/i.png"},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
                {"type": "video_url", "video_url": {"url": "https://example.com/v.mp4"}},
            ]},
            {"role": "assistant", "content": "Let me look.", "reasoning_content": "hm", "refusal": null,
             "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{ \"at\":1 }"}},
                {"id": "call_2", "type": "function", "function": {"name": "wait", "arguments": ""}},
            ]},
            {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "waited"}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "a cat"},
            {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
            {"role": "assistant", "content": null, "refusal": "no cats"},
            {"role": "assistant", "content": ""},
            {"role": "assistant", "content": [{"type": "text", "text": "A cat."}, {"type": "refusal", "refusal": "no"}]},
            {"role": "user", "content": ""},
        ],
        "tools": [
            {"type": "function", "function": {"name": "look", "description": "Looks.",
             "parameters": {"type": "object", "properties": {"at": {"type": "integer"}}}, "strict": true}},
            {"type": "function", "function": {"name": "wait"}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "look"}},
        "parallel_tool_calls": false,
        "something_new": {"is": "ignored"},
    });
    insta::assert_json_snapshot!(shown(&read(body).request));
}

#[test]
fn every_wish_is_read() {
    let mut body = json!({
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 5, "max_completion_tokens": 7, "temperature": 0.5, "top_p": 0.9,
        "presence_penalty": 1, "frequency_penalty": -1, "logprobs": true, "top_logprobs": 2,
        "reasoning_effort": "low", "verbosity": "high", "user": "someone",
        "prompt_cache_key": "key", "service_tier": "flex", "n": 1, "modalities": ["text"],
        "seed": 42, "stop": "END", "logit_bias": {"1": 2}, "store": true, "metadata": {"a": "b"},
        "response_format": {"type": "json_schema", "json_schema": {
            "name": "point", "schema": {"type": "object"}, "strict": true}},
        "stream": true, "stream_options": {"include_usage": true},
    });
    let asked = ChatRequest::read(body.clone(), "anthropic").unwrap();
    assert!(asked.with_usage);
    insta::assert_debug_snapshot!((&asked.request.options, &asked.request.output_format));
    let asked = ChatRequest::read(body.clone(), "ollama").unwrap();
    assert_eq!(
        Value::Object(asked.request.options.extra),
        json!({"options": {"stop": ["END"], "seed": 42}})
    );
    body["response_format"] = json!({"type": "json_object"});
    body["stop"] = Value::Null;
    let options = read(body).request.options;
    assert!(options.json_object && options.extra.is_empty());
}

#[test]
fn nothing_is_asked_for_that_was_not() {
    let asked = read(
        json!({"messages": [{"role": "user", "content": "hi"}], "tools": [],
        "tool_choice": "auto", "parallel_tool_calls": true, "response_format": {"type": "text"}}),
    );
    let request = asked.request;
    assert!(!asked.with_usage && request.output_format.is_none() && request.tools.is_empty());
    assert_eq!(
        (request.tool_choice, request.parallel_tool_calls),
        (None, None)
    );
    let expected = haft_core::ModelOptions {
        stream: Streaming::Whole,
        ..haft_core::ModelOptions::default()
    };
    assert_eq!(request.options, expected);
}

#[test]
fn each_choice_is_what_it_says_and_an_allowed_subset_is_all_that_is_shown() {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
    let allowed = |mode: &str| json!({"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [tool("b")]}});
    for (choice, expected, names) in [
        (Value::Null, None, vec!["a", "b"]),
        (json!("auto"), Some(ToolChoice::Auto), vec!["a", "b"]),
        (json!("none"), Some(ToolChoice::None), vec!["a", "b"]),
        (
            json!("required"),
            Some(ToolChoice::Required),
            vec!["a", "b"],
        ),
        (
            tool("a"),
            Some(ToolChoice::Function("a".into())),
            vec!["a", "b"],
        ),
        (allowed("auto"), Some(ToolChoice::Auto), vec!["b"]),
        (allowed("required"), Some(ToolChoice::Required), vec!["b"]),
    ] {
        let asked = read(json!({"messages": [{"role": "user", "content": "hi"}],
            "tools": [tool("a"), tool("b")], "tool_choice": choice}));
        let shown: Vec<_> = asked
            .request
            .tools
            .iter()
            .map(|tool| tool.definition().name().to_string())
            .collect();
        assert_eq!(
            (asked.request.tool_choice, shown),
            (expected, names.into_iter().map(String::from).collect()),
            "{choice}"
        );
    }
}

#[test]
fn ids_that_come_again_in_later_turns_are_told_apart() {
    let call = |id: &str| {
        json!({"role": "assistant", "tool_calls": [
        {"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}]})
    };
    let output = |text: &str| json!({"role": "tool", "tool_call_id": "c", "content": text});
    let items = conversation(&json!([call("c"), output("1"), call("c"), output("2")]));
    let ids: Vec<_> = items
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["call_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["c", "c", "c_2", "c_2"]);
}

#[test]
fn what_cannot_be_asked_is_refused_with_its_path() {
    for (body, code, param) in rows(include_str!("refusals.txt")) {
        let read = ChatRequest::read(body.clone(), "test");
        check_refused(read, &body, code, param);
    }
}

#[test]
fn content_that_the_model_cannot_take_is_named_by_its_place_in_the_body() {
    let image = json!({"type": "image_url", "image_url": {"url": "https://example.com/i.png"}});
    let text = json!({"type": "text", "text": "look"});
    let asked = |messages: Value| read(json!({"messages": messages}));
    let said = asked(
        json!([{"role": "system", "content": "s"}, {"role": "user", "content": [text, image]}]),
    );
    let given = asked(json!([
        {"role": "assistant", "content": "x", "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": "c", "content": [image]},
    ]));
    let blind = ScriptedModel::new(Vec::<Step>::new()).with_capabilities(Capabilities::default());
    let seeing = ScriptedModel::new(Vec::<Step>::new()).with_capabilities(Capabilities {
        image_input: true,
        ..Capabilities::default()
    });
    for (asked, param) in [
        (said, "messages[1].content[1]"),
        (given, "messages[1].content[0]"),
    ] {
        let error = asked.check_content(&blind).unwrap_err();
        assert_eq!(
            (error.code, error.param.as_deref()),
            (ErrorCode::UnsupportedContent, Some(param))
        );
        assert_eq!(asked.check_content(&seeing), Ok(()));
        assert!(matches!(
            asked.request.conversation.items().next(),
            Some(Item::Message(_))
        ));
    }
}

//! The offline model: each rule, and messages that mean no good.

#![allow(
    clippy::expect_used,
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests, and read best with values"
)]

use std::sync::Arc;

use futures_util::StreamExt;
use haft_core::{
    AllowedMode, AllowedTools, Assembly, Conversation, FunctionCallOutput, Item, Model, ModelEvent,
    ModelOptions, ModelRequest, ModelResponse, Streaming, ToolChoice, ToolDefinition,
};
use haft_models::OfflineModel;
use haft_models::offline::NOTICE;
use proptest::prelude::*;
use serde_json::{Value, json};

type Tool = Arc<ToolDefinition>;

/// A tool whose properties are all required.
fn tool(name: &str, description: &str, properties: Value) -> Tool {
    let required: Vec<_> = properties.as_object().unwrap().keys().cloned().collect();
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let builder = ToolDefinition::builder(name).description(description);
    builder.parameters(schema).build().unwrap()
}

fn weather() -> Tool {
    let city = json!({"city": {"type": "string"}});
    tool("get_weather", "The weather forecast for a place", city)
}

fn add() -> Tool {
    let number = json!({"type": "number"});
    tool("add", "Add two numbers", json!({"a": number, "b": number}))
}

fn clock() -> Tool {
    tool("clock", "The current time", json!({}))
}

fn all() -> Vec<Tool> {
    vec![weather(), add(), clock()]
}

fn request(tools: Vec<Tool>, text: &str) -> ModelRequest {
    ModelRequest {
        conversation: text.into(),
        tools: tools.into_iter().collect(),
        ..ModelRequest::default()
    }
}

async fn events(request: ModelRequest) -> Vec<ModelEvent> {
    let stream = OfflineModel::new().send(request).await.unwrap();
    stream.map(Result::unwrap).collect().await
}

async fn respond(request: ModelRequest) -> ModelResponse {
    let mut assembly = Assembly::default();
    for event in events(request).await {
        assembly.add(event);
    }
    assembly.finish().unwrap()
}

fn calls_of(response: &ModelResponse) -> Vec<(String, Value)> {
    let calls = response.items.iter().filter_map(|item| match item {
        Item::FunctionCall(call) => Some((
            call.name.clone(),
            serde_json::from_str(&call.arguments).unwrap(),
        )),
        _ => None,
    });
    calls.collect()
}

fn text_of(response: &ModelResponse) -> String {
    response.items.iter().map(Item::text).collect()
}

async fn calls(tools: Vec<Tool>, text: &str) -> Vec<(String, Value)> {
    calls_of(&respond(request(tools, text)).await)
}

/// The arguments with which the only tool is called.
async fn arguments(properties: Value, text: &str) -> Option<Value> {
    let tool = tool("zap", "Zap something", properties);
    let calls = calls(vec![tool], text).await;
    assert!(calls.len() < 2, "{calls:?}");
    calls.into_iter().next().map(|(_, arguments)| arguments)
}

fn call(name: &str, arguments: Value) -> (String, Value) {
    (name.to_owned(), arguments)
}

#[tokio::test]
async fn the_tool_whose_words_occur_is_called() {
    let oslo = vec![call("get_weather", json!({"city": "Oslo"}))];
    assert_eq!(calls(all(), "What's the weather in Oslo?").await, oslo);
    let sum = vec![call("add", json!({"a": 2, "b": 3.5}))];
    assert_eq!(calls(all(), "add 2 and 3.5").await, sum);
    let time = vec![call("clock", json!({}))];
    assert_eq!(calls(all(), "what time is it").await, time);
}

#[tokio::test]
async fn each_part_of_a_message_makes_at_most_one_call() {
    assert_eq!(
        calls(
            all(),
            "What's the weather in Oslo and add 2 and 3, then tell me the time."
        )
        .await,
        [
            call("get_weather", json!({"city": "Oslo"})),
            call("add", json!({"a": 2, "b": 3})),
            call("clock", json!({})),
        ]
    );
    assert_eq!(
        calls(
            all(),
            "Weather in Oslo? Weather in Bergen? Weather in Oslo?"
        )
        .await,
        [
            call("get_weather", json!({"city": "Oslo"})),
            call("get_weather", json!({"city": "Bergen"})),
        ]
    );
}

#[tokio::test]
async fn the_same_is_asked_again_for_another_name() {
    assert_eq!(
        calls(all(), "How is the weather in Oslo and New York?").await,
        [
            call("get_weather", json!({"city": "Oslo"})),
            call("get_weather", json!({"city": "New York"})),
        ]
    );
}

#[tokio::test]
async fn several_calls_are_made_in_one_turn_unless_that_is_forbidden() {
    let two = "weather in Oslo, then weather in Rome";
    assert_eq!(calls(all(), two).await.len(), 2);
    let one = ModelRequest {
        parallel_tool_calls: Some(false),
        ..request(all(), two)
    };
    let oslo = [call("get_weather", json!({"city": "Oslo"}))];
    assert_eq!(calls_of(&respond(one).await), oslo);
}

#[tokio::test]
async fn there_is_a_limit_to_the_calls_of_one_turn() {
    let parts: Vec<_> = (0..100).map(|n| format!("Weather in City{n}.")).collect();
    let text = parts.join(" ");
    assert_eq!(calls(all(), &text).await.len(), 16);
}

#[tokio::test]
async fn numbers_are_taken_in_order_or_by_name() {
    let properties = || json!({"x": {"type": "integer"}, "y": {"type": "number"}});
    assert_eq!(
        arguments(properties(), "zap 3 somethings at 4.5").await,
        Some(json!({"x": 3, "y": 4.5}))
    );
    assert_eq!(
        arguments(properties(), "zap 1.5 with x = 7").await,
        Some(json!({"x": 7, "y": 1.5}))
    );
    // A fraction is no integer.
    assert_eq!(
        arguments(json!({"x": {"type": "integer"}}), "zap 1.5").await,
        None
    );
    let list = json!({"values": {"type": "array", "items": {"type": "number"}}});
    assert_eq!(
        arguments(list, "zap it for 1, 2.5 and 3").await,
        Some(json!({"values": [1, 2.5, 3]}))
    );
}

#[tokio::test]
async fn quoted_strings_are_taken_as_they_are() {
    let properties = json!({"old": {"type": "string"}, "new": {"type": "string"}});
    assert_eq!(
        arguments(properties, "zap it: \"a and. b\" becomes 'c'").await,
        Some(json!({"old": "a and. b", "new": "c"}))
    );
    let list = json!({"names": {"type": "array", "items": {"type": "string"}}});
    assert_eq!(
        arguments(list, "zap \"a\" and \"b\"").await,
        Some(json!({"names": ["a", "b"]}))
    );
}

#[tokio::test]
async fn members_of_an_enumeration_are_found_in_the_text() {
    let unit =
        || json!({"unit": {"type": "string", "enum": ["celsius", "fahrenheit", "light_year"]}});
    assert_eq!(
        arguments(unit(), "zap it in Fahrenheit, not celsius").await,
        Some(json!({"unit": "fahrenheit"}))
    );
    assert_eq!(
        arguments(unit(), "zap it by the light year").await,
        Some(json!({"unit": "light_year"}))
    );
    assert_eq!(arguments(unit(), "zap it in kelvin").await, None);
    let level = json!({"level": {"enum": [1, 2, 3]}});
    assert_eq!(
        arguments(level, "zap level 2").await,
        Some(json!({"level": 2}))
    );
    let only = json!({"mode": {"const": "fast"}});
    assert_eq!(arguments(only, "zap").await, Some(json!({"mode": "fast"})));
    let described = json!({"unit": {"oneOf": [{"const": "a"}, {"const": "bee"}]}});
    assert_eq!(
        arguments(described, "zap bee").await,
        Some(json!({"unit": "bee"}))
    );
}

#[tokio::test]
async fn words_after_a_preposition_fill_strings() {
    let city = || json!({"city": {"type": "string"}});
    for (text, expected) in [
        ("zap it in New York please", "New York"),
        (
            "zap it for the city of Rio de Janeiro now",
            "Rio de Janeiro",
        ),
        ("zap it at oslo tomorrow", "oslo"),
        ("zap it for Zürich, quickly", "Zürich"),
        ("zap it in 東京", "東京"),
        ("zap it, city: Bergen", "Bergen"),
        ("zap something Paris", "Paris"),
    ] {
        assert_eq!(
            arguments(city(), text).await,
            Some(json!({"city": expected})),
            "{text}"
        );
    }
    let both = json!({"from": {"type": "string"}, "to": {"type": "string"}});
    assert_eq!(
        arguments(both, "zap it to Bergen from Oslo").await,
        Some(json!({"from": "Oslo", "to": "Bergen"}))
    );
}

#[tokio::test]
async fn other_strings_are_known_by_their_look() {
    let one = |name: &str, format: Option<&str>| {
        let mut property = json!({"type": "string"});
        if let Some(format) = format {
            property["format"] = format.into();
        }
        json!({name: property})
    };
    for (properties, text, expected) in [
        (
            one("recipient_email", None),
            "zap it for bob@example.org.",
            Some("bob@example.org"),
        ),
        (
            one("target", Some("uri")),
            "zap https://example.org/a?b=1,2!",
            Some("https://example.org/a?b=1,2"),
        ),
        (one("target", Some("uri")), "zap it for nothing", None),
        (
            one("filePath", None),
            "zap src/main.rs",
            Some("src/main.rs"),
        ),
        (
            one("when", Some("date")),
            "zap it on 2026-01-31",
            Some("2026-01-31"),
        ),
        (
            one("expression", None),
            "zap 2 * (3 + 4)?",
            Some("2 * (3 + 4)"),
        ),
        (
            one("query", None),
            "zap a search for rust and tokio",
            Some("rust and tokio"),
        ),
        (
            one("text", None),
            "Zap this, please!",
            Some("Zap this, please"),
        ),
        (one("colour", None), "zap this", None),
    ] {
        let name = properties
            .as_object()
            .unwrap()
            .keys()
            .next()
            .unwrap()
            .clone();
        let expected = expected.map(|value| json!({name: value}));
        assert_eq!(arguments(properties, text).await, expected, "{text}");
    }
}

#[tokio::test]
async fn booleans_are_said_or_denied() {
    let recursive = || json!({"recursive": {"type": "boolean"}});
    for (text, expected) in [
        ("zap it recursive", Some(true)),
        ("zap it without recursive", Some(false)),
        ("zap it, recursive off", Some(false)),
        ("zap it, yes", Some(true)),
        ("zap it: false", Some(false)),
        ("zap it, no", Some(false)),
        ("zap it", None),
    ] {
        let expected = expected.map(|value| json!({"recursive": value}));
        assert_eq!(arguments(recursive(), text).await, expected, "{text}");
    }
}

#[tokio::test]
async fn only_required_arguments_are_filled() {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "unit": {"$ref": "#/$defs/Unit"},
            "place": {"type": ["object", "null"], "properties": {"level": {"type": "integer"}},
                "required": ["level"]},
            "depth": {"type": "integer", "default": 9},
        },
        "required": ["unit", "city", "place", "depth"],
        "$defs": {"Unit": {"enum": ["c", "f"]}},
    });
    let forecast = ToolDefinition::builder("forecast")
        .parameters(schema)
        .build()
        .unwrap();
    assert_eq!(
        calls(vec![forecast], "forecast in Oslo, level 5, unit f").await,
        [call(
            "forecast",
            json!({"city": "Oslo", "unit": "f", "place": {"level": 5}, "depth": 9})
        )]
    );
}

#[tokio::test]
async fn a_tool_without_schema_is_called_without_arguments() {
    let tool = ToolDefinition::builder("ping")
        .no_schema(haft_core::NoSchemaMode::Full)
        .build()
        .unwrap();
    assert_eq!(calls(vec![tool], "ping").await, [call("ping", json!({}))]);
}

#[tokio::test]
async fn what_is_missing_is_said_and_the_call_is_not_made() {
    let response = respond(request(all(), "How is the weather? Add 5.")).await;
    assert_eq!(calls_of(&response), []);
    assert_eq!(
        text_of(&response),
        format!(
            "`get_weather` needs `city`, which the message does not say.\n\
             `add` needs `b`, which the message does not say.\n{NOTICE}"
        )
    );
    // What can be called is called all the same.
    let response = respond(request(all(), "How is the weather? And the time?")).await;
    assert_eq!(calls_of(&response), [call("clock", json!({}))]);
    assert!(text_of(&response).contains("`get_weather` needs `city`"));
}

#[tokio::test]
async fn of_tools_that_fit_equally_the_one_that_can_be_called_is() {
    let by_id = tool(
        "user_by_id",
        "Find a user",
        json!({"id": {"type": "integer"}}),
    );
    let by_mail = tool(
        "user_by_mail",
        "Find a user",
        json!({"email": {"type": "string"}}),
    );
    assert_eq!(
        calls(vec![by_id, by_mail], "find user bob@example.org").await,
        [call("user_by_mail", json!({"email": "bob@example.org"}))]
    );
}

#[tokio::test]
async fn a_message_that_fits_no_tool_is_answered_in_words() {
    let response = respond(request(all(), "Good morning!")).await;
    assert_eq!(
        text_of(&response),
        format!("None of the tools fits the message: `get_weather`, `add`, `clock`.\n{NOTICE}")
    );
    let response = respond(request(Vec::new(), "weather in Oslo")).await;
    assert!(text_of(&response).starts_with("No tools are offered"));
}

/// The second turn of a conversation, after these outputs.
fn answered(outputs: Vec<FunctionCallOutput>) -> ModelRequest {
    let mut items = vec![
        Item::user("weather in Oslo, and the time"),
        Item::function_call("c1", "get_weather", "{}"),
        Item::function_call("c2", "clock", "{}"),
    ];
    items.extend(outputs.into_iter().map(Item::FunctionCallOutput));
    ModelRequest {
        conversation: Conversation::from(items),
        ..request(all(), "")
    }
}

#[tokio::test]
async fn outputs_are_quoted_call_by_call_and_failures_are_told() {
    let request = answered(vec![
        FunctionCallOutput::new("c2", "the clock is broken").as_error(),
        FunctionCallOutput::new("c1", " rain all day\n"),
    ]);
    assert_eq!(
        text_of(&respond(request).await),
        format!("`get_weather`: rain all day\n`clock` failed: the clock is broken\n{NOTICE}")
    );
    let text = text_of(&respond(answered(vec![FunctionCallOutput::new("c1", "")])).await);
    assert_eq!(
        text,
        format!("`get_weather`: (nothing)\n`clock` has not answered.\n{NOTICE}")
    );
}

#[tokio::test]
async fn there_is_one_round_of_calls_per_message_whatever_is_demanded() {
    let again = ModelRequest {
        tool_choice: Some(ToolChoice::Required),
        ..answered(vec![
            FunctionCallOutput::new("c1", "try again: weather in Rome").as_error(),
            FunctionCallOutput::new("c2", "noon"),
        ])
    };
    assert_eq!(calls_of(&respond(again.clone()).await), []);
    // The next message is a new beginning.
    let mut conversation = again.conversation;
    conversation.push(Item::assistant("noon"));
    conversation.push(Item::user("weather in Rome"));
    let next = ModelRequest {
        conversation,
        ..request(all(), "")
    };
    let response = respond(next).await;
    assert_eq!(
        calls_of(&response),
        [call("get_weather", json!({"city": "Rome"}))]
    );
    let Item::FunctionCall(first) = &response.items[0] else {
        unreachable!("a call was expected")
    };
    assert_eq!(first.call_id, "call_offline_7_0");
}

#[tokio::test]
async fn a_tool_choice_is_respected() {
    let choosing = |choice: ToolChoice, text: &str| ModelRequest {
        tool_choice: Some(choice),
        ..request(all(), text)
    };
    let text = "weather in Oslo";
    let none = respond(choosing(ToolChoice::None, text)).await;
    assert_eq!(calls_of(&none), []);
    assert!(text_of(&none).starts_with("No tool may be called"));

    let forced = choosing(ToolChoice::Function("clock".into()), text);
    assert_eq!(calls_of(&respond(forced).await), [call("clock", json!({}))]);
    let unable = respond(choosing(ToolChoice::Function("add".into()), text)).await;
    assert!(text_of(&unable).starts_with("`add` needs `a`, `b`"));
    let unknown = respond(choosing(ToolChoice::Function("nope".into()), text)).await;
    assert!(text_of(&unknown).starts_with("The tool `nope` is demanded but not offered."));

    // Nothing fits, but something must be called: what can be.
    let required = choosing(ToolChoice::Required, "hello");
    assert_eq!(
        calls_of(&respond(required).await),
        [call("clock", json!({}))]
    );

    let allowed = choosing(
        ToolChoice::allowed(["clock", "add"]),
        "weather in Oslo and the time",
    );
    assert_eq!(
        calls_of(&respond(allowed).await),
        [call("clock", json!({}))]
    );
    let forbidden = ToolChoice::Allowed(AllowedTools {
        mode: AllowedMode::None,
        names: vec!["clock".into()],
    });
    assert_eq!(calls_of(&respond(choosing(forbidden, "time")).await), []);
}

#[tokio::test]
async fn answers_stream_word_by_word_and_say_what_answers() {
    let pieces = |events: &[ModelEvent]| -> Vec<String> {
        let texts = events.iter().filter_map(|event| match event {
            ModelEvent::TextDelta { text, .. } => Some(text.clone()),
            _ => None,
        });
        texts.collect()
    };
    let streamed = pieces(&events(request(Vec::new(), "hi")).await);
    assert_eq!(streamed[..3], ["No ", "tools ", "are "]);
    assert!(streamed.concat().ends_with(NOTICE));
    let whole = ModelRequest {
        options: ModelOptions {
            stream: Streaming::Whole,
            ..ModelOptions::default()
        },
        ..request(Vec::new(), "hi")
    };
    assert_eq!(pieces(&events(whole).await), [streamed.concat()]);
}

#[tokio::test]
async fn usage_grows_with_what_is_sent() {
    let small = respond(request(all(), "weather in Oslo"))
        .await
        .usage
        .unwrap();
    let text = format!("weather in Oslo {}", "please ".repeat(1000));
    let large = respond(request(all(), &text)).await.usage.unwrap();
    assert_eq!(small.requests, 1);
    assert!(small.output_tokens > 0);
    assert!(large.input_tokens > small.input_tokens + 1000);
}

#[tokio::test]
async fn messages_that_mean_no_good_are_answered_too() {
    let mut texts: Vec<String> = [
        "",
        " ",
        "?!.,;",
        "\0\u{feff}\u{202e}",
        "''''\"\"``",
        "- -- + * /",
    ]
    .iter()
    .map(|text| (*text).to_owned())
    .collect();
    for piece in [
        "weather in ",
        "in ",
        "the ",
        "and ",
        "1 ",
        "'",
        "\"",
        "“",
        "«",
        "a. ",
        "add -",
        "x=",
        "東",
        "🦀",
        "e\u{301}",
        "weather add time ",
        "in: ",
        "1.",
        "city: ",
    ] {
        texts.push(piece.repeat(100 * 1024 / piece.len()));
    }
    let list = json!({"values": {"type": "array", "items": {"type": "number"}}});
    for text in texts {
        let tools = [all(), vec![tool("list_1", "weather list", list.clone())]].concat();
        let response = respond(request(tools, &text)).await;
        assert!(!response.items.is_empty());
    }
}

#[tokio::test]
async fn a_value_is_never_cut_where_reading_ends() {
    let text = format!("weather {}in Oslo", " ".repeat(32 * 1024 - 13));
    assert!(calls(all(), &text).await.is_empty());
    let text = format!("weather {}in Oslo", " ".repeat(32 * 1024 - 20));
    assert_eq!(calls(all(), &text).await.len(), 1);
}

#[tokio::test]
async fn schemas_that_mean_no_good_are_no_reason_to_panic() {
    let looped = json!({
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/nowhere"}, "c": {"enum": []},
            "d": {"anyOf": []}, "e": {"type": "array"}, "f": {"type": "object"}},
        "required": ["a", "b", "c", "d", "e", "f", "g"],
        "$defs": {"A": {"$ref": "#/$defs/A"}},
    });
    let tool = ToolDefinition::builder("odd")
        .parameters(looped)
        .build()
        .unwrap();
    let response = respond(request(vec![tool], "odd")).await;
    assert_eq!(calls_of(&response), []);
    assert!(text_of(&response).contains("`odd` needs `a`"));
}

proptest! {
    #[test]
    fn no_message_is_too_odd(text in any::<String>(), words in "[ a-zA-Z0-9.,'\"“”=:/@-]{0,80}") {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for text in [format!("weather {text}"), format!("add {words}"), text + &words] {
            let first = runtime.block_on(respond(request(all(), &text)));
            let second = runtime.block_on(respond(request(all(), &text)));
            prop_assert_eq!(&first, &second);
            prop_assert!(!first.items.is_empty());
        }
    }
}

//! Arguments are what the message holds, and nothing else.

use haft_core::ToolDefinition;
use haft_models::offline::NOTICE;
use serde_json::{Value, json};

use super::{all, call, calls, calls_of, request, respond, text_of, tool};

/// The arguments with which the only tool is called.
async fn arguments(properties: Value, text: &str) -> Option<Value> {
    let tool = tool("zap", "Zap something", properties);
    let calls = calls(vec![tool], text).await;
    assert!(calls.len() < 2, "{calls:?}");
    calls.into_iter().next().map(|(_, arguments)| arguments)
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

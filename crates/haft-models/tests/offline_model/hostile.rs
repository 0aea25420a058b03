//! Messages and schemas that mean no good.

use haft_core::ToolDefinition;
use proptest::prelude::*;
use serde_json::json;

use super::{all, calls, calls_of, request, respond, text_of, tool};

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

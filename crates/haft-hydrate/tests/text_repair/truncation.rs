//! What is cut off, and what only lacks its closers.

use haft_core::FinishReason;
use haft_hydrate::text::{Root, TextPolicy, is_truncated, repair_text};

use crate::common::*;

#[test]
fn a_truncated_token_is_refused() {
    let cut = [
        r#"{"a": "x"#,
        r#"{"a"#,
        r#"{"a""#,
        r#"{"a":"#,
        r#"{"a": "x\"#,
        r#"{"a": "x\u00"#,
        r#"{"a": "\ud83d"#,
        "{\"a\": tru",
        "{\"a\": nul",
        "{\"a\": Non",
        "{\"a\": -",
        "{\"a\": 2.",
        "{\"a\": 2e+",
        "{\"a\": wor",
        "{",
        "[1,",
        "{\"a\": [1, ",
        "{\"a\": {",
        r#"{\"a\": \"x"#,
        r#"{\"a\": \"x\"#,
        "{'a': 'x",
        "{“a”: “x",
        "{\"a\": \"the \"big",
        "Sure: {\"a\": \"x",
        "```json\n{\"a\": \"x\n```",
        "```json\n{\"a\": \"hel\n```\nHe is 5'10\"",
        "{\"a\": 1, b",
    ];
    for input in cut {
        is_cut(input);
    }
    // The end of the text says nothing here, and the fence in the string is still one too many.
    refuses("~~~\n{\"a\": \"hel\n  ~~~\nso he said \"yes\"}");
}

#[test]
fn closers_need_a_normal_finish() {
    let finishes = [
        FinishReason::Normal,
        FinishReason::Length,
        FinishReason::ContentFilter,
        FinishReason::Error,
        FinishReason::Unknown,
    ];
    let accepted = |input: &str| {
        finishes
            .map(|finish| repair_text(input, finish, TextPolicy::Arguments, Root::Object).is_ok())
    };
    assert_eq!(accepted(r#"{"a": "x""#), [true, false, false, false, false]);
    assert_eq!(accepted(r#"{"a": 5"#), [true, false, false, false, false]);
    assert_eq!(accepted(r#"{"a": 5,"#), [true, false, false, false, false]);
    assert_eq!(accepted(r#"{"a": 5,}"#), [true; 5]);
    assert_eq!(accepted(r#"{"a": "x"#), [false; 5]);
}

#[test]
fn complete_texts_are_not_called_truncated() {
    for input in [
        "{a: 1}",
        "{\"a\": NaN}",
        "no call",
        "sorry",
        "{\"a\": \"x\" y\"}",
        r#"{\"a\": \"x\"}"#,
        "",
    ] {
        assert!(!is_truncated(input), "{input}");
    }
    assert!(is_truncated("{\"a\": NaN, \"b\": \"x"));
    assert!(is_truncated("{\"a\": 1"));
    assert!(is_truncated(r#""{\"a\": \"x"#));
}

//! What is repaired, by kind.

use haft_core::RepairKind;
use haft_hydrate::text::replay;
use serde_json::json;

use crate::common::*;

#[test]
fn valid_json_is_left_alone() {
    for input in [
        "{}",
        " {\"a\": [1, 2.50, \"x\\n\\u00e9\", null, {}]}\r\n",
        "[{\"a\": 1}]",
    ] {
        let repaired = repair(input).unwrap();
        assert_eq!((&*repaired.text, repaired.events.len()), (input, 0));
    }
}

#[test]
fn a_surplus_comma_is_dropped() {
    accepts(
        r#"{"a": [1, 2,], }"#,
        &json!({"a": [1, 2]}),
        &[RepairKind::TrailingComma],
    );
    accepts(
        r#"{,"a": 1,,"b": 2}"#,
        &json!({"a": 1, "b": 2}),
        &[RepairKind::SurplusComma],
    );
    accepts(
        r#"{"a": 1},"#,
        &json!({"a": 1}),
        &[RepairKind::TrailingComma],
    );
}

#[test]
fn a_trailing_comma_before_a_comment_keeps_the_edits_in_order() {
    let kinds = [
        RepairKind::Comment,
        RepairKind::TrailingComma,
        RepairKind::Comment,
    ];
    accepts("{\"a\": 1 /* x */, /* y */}", &json!({"a": 1}), &kinds);
}

#[test]
fn other_quotes_become_double_quotes() {
    accepts(
        "{'a': 'say \"x\"'}",
        &json!({"a": "say \"x\""}),
        &[
            RepairKind::SingleQuotes,
            RepairKind::InnerQuote,
            RepairKind::SingleQuotes,
        ],
    );
    accepts(
        "{'a': \"it's\", `b`: 'it's'}",
        &json!({"a": "it's", "b": "it's"}),
        &[RepairKind::SingleQuotes],
    );
    accepts(
        "{“a”: “b”, ‘c’: ‘d’s’}",
        &json!({"a": "b", "c": "d’s"}),
        &[RepairKind::SmartQuotes],
    );
    assert_eq!(
        value_of("{“a”: “say \"x\", ok”}"),
        json!({"a": "say \"x\", ok"})
    );
    assert_eq!(
        value_of("{'a': 'rock 'n' roll'}"),
        json!({"a": "rock 'n' roll"})
    );
}

#[test]
fn curly_quotes_inside_a_plain_string_stay() {
    accepts(
        "{\"a\": \"“x”\",}",
        &json!({"a": "“x”"}),
        &[RepairKind::TrailingComma],
    );
}

#[test]
fn bare_keys_are_quoted() {
    accepts(
        "{a: 1, $b-c.d: {é: 2}}",
        &json!({"a": 1, "$b-c.d": {"é": 2}}),
        &[RepairKind::UnquotedKey],
    );
}

#[test]
fn python_literals_are_mapped() {
    accepts(
        "{\"a\": [True, False, {\"b\": None}]}",
        &json!({"a": [true, false, {"b": null}]}),
        &[RepairKind::PythonLiteral],
    );
}

#[test]
fn the_document_is_taken_out_of_its_surroundings() {
    let expected = json!({"a": "it's {x}"});
    let document = r#"{"a": "it's {x}"}"#;
    let around = [
        ("```\n", "\n```"),
        ("Voilà l'appel :\r\n~~~jsonc\r\n", "\r\n~~~\r\nC'est tout."),
        ("Okay, that's [1] it: ", " (see [2], {x} and `y`)."),
        ("<call>\n", "\n</call>"),
        ("Result => ", ""),
        ("Okay, **arguments:**\n", ""),
        (
            "Here are the arguments, at 10:30:\n```json\n",
            "\n```\nThat's \"all\".",
        ),
        ("arguments:\n```json\n", "\n```"),
        ("<think>I call it.</think>\n", "\nIs that right?"),
        ("The input of \"fetch_it\": ", ""),
        ("```{.json}\n", "\n```"),
        ("[TOOL_CALLS] ", ""),
        ("params:\n", "\n"),
        ("const args = ", ";"),
        ("json5\n", ""),
        ("fetch_it(", ");"),
        ("I now call fetch_it(", ")!"),
        ("\u{feff}", "\u{3000}"),
        ("/* {\"b\": 1} */ // {\n", " # {}"),
        ("\"", "\""),
        ("", "}}"),
    ];
    for (before, after) in around {
        assert_eq!(
            value_of(&format!("{before}{document}{after}")),
            expected,
            "{before}…{after}"
        );
    }
}

#[test]
fn missing_closers_are_appended_after_a_complete_value() {
    accepts(
        r#"{"a": {"b": "x""#,
        &json!({"a": {"b": "x"}}),
        &[RepairKind::MissingClose],
    );
    accepts(
        "{\"a\": [true\n",
        &json!({"a": [true]}),
        &[RepairKind::MissingClose],
    );
    accepts(
        "{\"a\": 5",
        &json!({"a": 5}),
        &[RepairKind::NumberAtEnd, RepairKind::MissingClose],
    );
    accepts(
        "{\"a\": 5,",
        &json!({"a": 5}),
        &[RepairKind::TrailingComma, RepairKind::MissingClose],
    );
    assert_eq!(value_of("```json\n{\"a\": 5\n```\nDone."), json!({"a": 5}));
    assert_eq!(value_of("<x>{\"a\": [5</x>"), json!({"a": [5]}));
}

#[test]
fn raw_controls_are_escaped() {
    accepts(
        "{\"a\": \"x\r\n\ty\"}",
        &json!({"a": "x\r\n\ty"}),
        &[RepairKind::RawControl],
    );
}

#[test]
fn inner_quotes_are_escaped() {
    accepts(
        r#"{"a": "the "big" one", "b": 1}"#,
        &json!({"a": "the \"big\" one", "b": 1}),
        &[RepairKind::InnerQuote],
    );
    assert_eq!(
        value_of(r#"{"c": ["print("é")"]}"#),
        json!({"c": ["print(\"é\")"]})
    );
    assert_eq!(value_of(r#"{"a": ""x" is y"}"#), json!({"a": "\"x\" is y"}));
    assert_eq!(value_of(r#"{"a": "y is "x""}"#), json!({"a": "y is \"x\""}));
}

#[test]
fn comments_are_dropped() {
    accepts(
        "{\n# one\n\"a\": 1, // two {\n/* \"three\": */ \"b\": \"//x\" # four\n}",
        &json!({"a": 1, "b": "//x"}),
        &[RepairKind::Comment],
    );
}

#[test]
fn a_missing_comma_is_put_in() {
    accepts(
        "{\"a\": \"x\"\n\"b\": 2\n'c': [\"p\"\n\"q\"\n{}{} 1\n2]}",
        &json!({"a": "x", "b": 2, "c": ["p", "q", {}, {}, 1, 2]}),
        &[
            RepairKind::MissingComma,
            RepairKind::SingleQuotes,
            RepairKind::MissingComma,
        ],
    );
    assert_eq!(
        value_of("{\"a\": \"x\" \"b\": 2}"),
        json!({"a": "x", "b": 2})
    );
    assert_eq!(
        value_of("{\"a\": \"x\"\r\nb: 2}"),
        json!({"a": "x", "b": 2})
    );
}

#[test]
fn a_missing_colon_is_put_in() {
    accepts(
        "{\"a\" 1, \"b\" \"x\", c 'y'}",
        &json!({"a": 1, "b": "x", "c": "y"}),
        &[
            RepairKind::MissingColon,
            RepairKind::UnquotedKey,
            RepairKind::MissingColon,
            RepairKind::SingleQuotes,
        ],
    );
}

#[test]
fn one_level_of_escaping_is_taken_off() {
    let expected = json!({"a": "say \"x\"", "b": "l1\nl2", "c": [1]});
    let document = serde_json::to_string_pretty(&expected).unwrap();
    let encoded = serde_json::to_string(&document).unwrap();
    let escaped = encoded.trim_matches('"');
    accepts(escaped, &expected, &[RepairKind::Unescaped]);
    assert_eq!(value_of(&format!("Here: {escaped} .")), expected);
    accepts(&encoded, &expected, &[RepairKind::Unescaped]);
    assert_eq!(value_of(&encoded.replace('[', "[,")), expected);
}

#[test]
fn faults_inside_escaped_text_are_repaired_too() {
    let input = r#"{\"a\": \"x\", \"b\": [True,], c: 'é'}"#;
    assert_eq!(value_of(input), json!({"a": "x", "b": [true], "c": "é"}));
    let repaired = repair(input).unwrap();
    assert_eq!(replay(input, &repaired.events), Some(repaired.text));
}

#[test]
fn lone_backslashes_are_restored_where_all_are_lone() {
    accepts(
        r#"{"p": "C:\dir\x", "r": "\d+\.\w"}"#,
        &json!({"p": r"C:\dir\x", "r": r"\d+\.\w"}),
        &[RepairKind::LoneBackslash],
    );
    accepts(
        r#"{"a": "it\'s"}"#,
        &json!({"a": "it's"}),
        &[RepairKind::ForeignEscape],
    );
}

#[test]
fn the_rest_of_the_lossless_kinds() {
    accepts(
        r#"{"a": .5, "b": -.5}"#,
        &json!({"a": 0.5, "b": -0.5}),
        &[RepairKind::LeadingDot],
    );
    accepts(
        "{\"a\":\u{a0}\u{3000}1}",
        &json!({"a": 1}),
        &[RepairKind::SpecialBlank],
    );
    accepts(
        "\u{feff}{\"a\":1}",
        &json!({"a": 1}),
        &[RepairKind::ByteOrderMark],
    );
    accepts(
        r#"{"a": "x" + 'y' /* z */ + "w"}"#,
        &json!({"a": "xyw"}),
        &[RepairKind::Concatenation],
    );
    accepts(
        r#"{"a": 1}]}"#,
        &json!({"a": 1}),
        &[RepairKind::SurplusClose],
    );
    accepts(
        r#"{"a": [{"b": 1]}"#,
        &json!({"a": [{"b": 1}]}),
        &[RepairKind::MismatchedClose],
    );
    accepts(
        r#"{"a": 1]"#,
        &json!({"a": 1}),
        &[RepairKind::MismatchedClose],
    );
    accepts(
        r#"{"a": [1}, "b": 2}"#,
        &json!({"a": [1], "b": 2}),
        &[RepairKind::MismatchedClose],
    );
    accepts(
        r#"["a": 1]"#,
        &json!([{"a": 1}]),
        &[RepairKind::MissingBraces],
    );
}

#[test]
fn an_event_says_where_and_what() {
    let repaired = repair("{\"k/1\": [0, {'x': None}]}").unwrap();
    let last = repaired.events.last().unwrap();
    assert_eq!(last.path, "/k~11/1/x");
    assert_eq!(
        (last.offset, &*last.before, &*last.after),
        (Some(18), "None", "null")
    );
}

#[test]
fn replay_refuses_foreign_events() {
    let repaired = repair("{a: 1}").unwrap();
    assert_eq!(replay("{b: 1}", &repaired.events), None);
    assert_eq!(replay("", &repaired.events), None);
}

//! What the text repairer accepts, by kind, and what it refuses, by reason.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use haft_core::{FinishReason, RepairKind};
use haft_hydrate::text::{
    Root, TextPolicy, TextRefusal, TextRepair, is_truncated, repair_text, replay,
};
use haft_hydrate::{MAX_BYTES, MAX_DEPTH};
use serde_json::{Value, json};

fn repair(input: &str) -> Result<TextRepair, TextRefusal> {
    repair_text(
        input,
        FinishReason::Normal,
        TextPolicy::Arguments,
        Root::Object,
    )
}

fn any(input: &str) -> Result<TextRepair, TextRefusal> {
    repair_text(
        input,
        FinishReason::Normal,
        TextPolicy::Arguments,
        Root::Any,
    )
}

#[track_caller]
fn accepts(input: &str, expected: &Value, kinds: &[RepairKind]) {
    let repaired = repair(input).unwrap_or_else(|refusal| panic!("{input}: {refusal}"));
    let value: Value = serde_json::from_str(&repaired.text).expect(&repaired.text);
    assert_eq!(&value, expected, "{input}");
    let mut found: Vec<RepairKind> = repaired.events.iter().map(|event| event.kind).collect();
    found.dedup();
    assert_eq!(found, kinds, "{input}");
    assert_eq!(
        replay(input, &repaired.events).as_deref(),
        Some(&*repaired.text)
    );
}

#[track_caller]
fn value_of(input: &str) -> Value {
    let repaired = repair(input).unwrap_or_else(|refusal| panic!("{input}: {refusal}"));
    serde_json::from_str(&repaired.text).expect(&repaired.text)
}

#[track_caller]
fn refuses(input: &str) -> TextRefusal {
    match repair(input) {
        Ok(repaired) => panic!("{input} became {}", repaired.text),
        Err(refusal) => refusal,
    }
}

#[track_caller]
fn refuses_as(input: &str, expected: RepairKind) {
    match refuses(input) {
        TextRefusal::Inadmissible { kind, .. } => assert_eq!(kind, expected, "{input}"),
        other => panic!("{input}: {other}"),
    }
}

#[track_caller]
fn is_cut(input: &str) {
    assert!(
        matches!(refuses(input), TextRefusal::Truncated { .. }),
        "{input}: {}",
        refuses(input)
    );
    assert!(is_truncated(input), "{input}");
}

// ---- accepted ----------------------------------------------------------------------------------

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

// ---- truncation --------------------------------------------------------------------------------

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
        "{\"a\": 1, b",
    ];
    for input in cut {
        is_cut(input);
    }
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

// ---- refused -----------------------------------------------------------------------------------

#[test]
fn invented_values_are_refused() {
    for input in [
        "{\"a\":}",
        "{\"a\":,\"b\":1}",
        "{\"a\": undefined}",
        "{\"a\": NaN}",
        "{\"a\": [-Infinity]}",
    ] {
        refuses_as(input, RepairKind::InventedValue);
    }
}

#[test]
fn elided_content_is_refused() {
    for input in [
        "{\"a\": [1, ...]}",
        "{...}",
        "{\"a\": 1, …}",
        "{\"a\": ...}",
        "{\"a\": [\"x\", …, \"y\"]}",
    ] {
        refuses_as(input, RepairKind::Ellipsis);
    }
}

#[test]
fn unclear_borders_are_refused() {
    let unclear = [
        r#"{"a": "x, "b": "y"}"#,
        r#"{"a": "he said "yes", then left"}"#,
        r#"{"a": "he said "yes", "no" and left"}"#,
        r#"{"a": ["x, "y", "z"]}"#,
        r#"{"a": ["x, "y, "z"]}"#,
        r#"{"a": ["x" "y"]}"#,
        r#"{"a": ""x""}"#,
        r#"{"a": "C "+" D"}"#,
        r#"{"path": "C:\dir\", "b": "x"}"#,
        "{'a': 'the dogs' bowl'}",
        r#"{"a": "x" y", "b": 1}"#,
        "{\"a\": \"x\n\"b\": 1}",
    ];
    for input in unclear {
        refuses(input);
    }
}

#[test]
fn a_comment_mark_behind_an_inner_quote_never_cuts_a_string() {
    for input in [
        "{\"command\": \"echo \"# Title\" > README.md\",\n \"cwd\": \"/tmp\"}",
        "{\"code\": \"printf(\"// hello\");\",\n \"x\": 1}",
        "[\"rm \"/* all */\"\", \"z\"]",
        "[\"rm \"/* all \" */, \"z\"]",
        "{'command': 'echo '# Title' > README.md',\n 'cwd': '/tmp'}",
        "{“command”: “echo ”# Title” > README.md”,\n “cwd”: “/tmp”}",
        "{\"command\": \"echo \"# Title\ntext\" > x\"}",
        "{\"a\": \"\", // c\",\n \"b\": 1}",
    ] {
        refuses(input);
    }
    let kept = "{\"a\": \"x\" // it's\n, 'b': 'y' # don't\n}";
    assert_eq!(value_of(kept), json!({"a": "x", "b": "y"}));
    let kept = "{\"a\": \"x\", // \"old\": 2\n \"b\": 1}";
    assert_eq!(value_of(kept), json!({"a": "x", "b": 1}));
}

#[test]
fn a_plus_between_quotes_joins_only_what_cannot_be_one_text() {
    for input in [
        r#"{"a": ""+""}"#,
        r#"{"a": "" + "x"}"#,
        r#"{"a": "x" + ""}"#,
        r#"{"a": "("+")"}"#,
        r#"{"a": "say ""+"" twice"}"#,
        r#"{"a": "C "+/* " */"D"}"#,
    ] {
        refuses(input);
    }
    assert_eq!(value_of(r#"{"a": "x" + "y"}"#), json!({"a": "xy"}));
    assert_eq!(value_of(r#"{"a": "x "+"y"}"#), json!({"a": "x y"}));
}

#[test]
fn a_carriage_return_ends_a_line_comment() {
    let input = "{\"a\": [1, // one\r 2, 3\n ]}";
    assert_eq!(value_of(input), json!({"a": [1, 2, 3]}));
}

#[test]
fn quotes_doubled_at_both_borders_are_refused() {
    for input in [
        "{\"code\": \"\"\"\ndef f():\n\"\"\"}",
        "{\"code\": '''\ndef f():\n'''}",
        "{\"code\": \"\"\"x\"\"\", \"b\": 1}",
        "{\"code\": \"\"\"\"\"\"}",
        r#"{"a": ""x" or "y""}"#,
    ] {
        refuses(input);
    }
}

#[test]
fn a_doubled_quote_between_two_strings_is_refused() {
    refuses("[\"🍎\"\"🍌\"]");
    refuses("{\"a\": [\"(x)\"\"(y)\"]}");
    refuses("['🍎''🍌']");
}

#[test]
fn two_numbers_on_one_line_need_a_comma() {
    for input in [
        "[1\u{202f}500, 2]",
        "[1\u{a0}500, 2]",
        "[1\u{2009}500, 2]",
        "[1 5000]",
        "[12 34]",
        "[1  -3]",
        "[1'500']",
        "{\"a\": [1 .5]}",
    ] {
        refuses(input);
    }
    assert_eq!(value_of("{\"a\": [1\n500]}"), json!({"a": [1, 500]}));
}

#[test]
fn a_last_quote_that_may_be_an_apostrophe_is_refused() {
    is_cut("{'msg': 'I don'");
    is_cut("{‘msg’: ‘I don’");
    is_cut("['I don'");
    assert_eq!(value_of("{'msg': 'done'\n"), json!({"msg": "done"}));
}

#[test]
fn backslashes_of_a_document_within_quotes_are_refused() {
    for input in [
        "```json\n\"{'p': 'C:\\\\dir'}\"\n```",
        "args = \"{'p': 'a\\\\nb'}\"",
        "args = \"{'p': 'a\\nb'}\"",
        "args = '{\"p\": \"a\\\\nb\"}'",
        "Here: \"{'p': 'a\\\\nb'}\"",
    ] {
        refuses_as(input, RepairKind::GuessedBackslash);
    }
    let encoded = "args = \"{\\\"p\\\": \\\"a\\\\nb\\\"}\"";
    assert_eq!(value_of(encoded), json!({"p": "a\nb"}));
    assert_eq!(value_of("args = \"{'p': 'x'}\""), json!({"p": "x"}));
}

#[test]
fn the_paths_of_all_edits_together_are_bounded() {
    let members: Vec<String> = (0..4000).map(|index| format!("k{index}:1")).collect();
    let key = "k".repeat(100_000);
    let input = format!("{{\"{key}\":{{{}}}}}", members.join(","));
    assert!(matches!(refuses(&input), TextRefusal::TooManyEdits { .. }));
    for policy in [TextPolicy::Arguments, TextPolicy::Preview] {
        let input = format!("{{\"{key}\":\"{}\"}}", "\n\u{1f600}".repeat(4000));
        assert!(repair_text(&input, FinishReason::Normal, policy, Root::Object).is_err());
    }
    let text = "\n\t".repeat(100_000);
    assert_eq!(
        value_of(&format!("{{\"a\": \"{text}\"}}")),
        json!({"a": text})
    );
}

#[test]
fn asking_for_truncation_takes_linear_time() {
    let input = format!("[{}", ":\"".repeat(500_000));
    let start = std::time::Instant::now();
    let _ = is_truncated(&input);
    for (before, piece, after) in [
        ("", ": ", "{\"a\": 1}"),
        ("", "= ", "{\"a\": 1}"),
        ("{\"a\": \"", "x\" # ", "\"}"),
        ("{'a': '", "x' /* don't ", "'}"),
        ("{\"a\": 1} ", "a b: ", ""),
    ] {
        let _ = repair(&format!("{before}{}{after}", piece.repeat(100_000)));
    }
    let limit = if cfg!(debug_assertions) { 4.0 } else { 0.5 };
    assert!(
        start.elapsed().as_secs_f64() < limit,
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn unclear_backslashes_are_refused() {
    for input in [
        r#"{"p": "C:\new\dir"}"#,
        r#"{"p": "\\srv\share"}"#,
        r#"{"p": "\x41"}"#,
        r#"{"p": "^\/\d"}"#,
    ] {
        refuses_as(input, RepairKind::GuessedBackslash);
    }
    refuses(r#"{"p": "C:\users"}"#);
}

#[test]
fn bare_text_and_odd_numbers_are_refused() {
    for input in [
        "{\"a\": hello}",
        "{\"a\": 007}",
        "{\"a\": 1_000}",
        "{\"a\": 0x1F}",
        "{\"a\": +5}",
        "{\"a\": 5kg}",
        "{\"a\": TRUE}",
        "{\"a\": Id(\"x\")}",
    ] {
        refuses_as(input, RepairKind::UnquotedText);
    }
    refuses_as("{\"a\": 2.}", RepairKind::CutLiteral);
    refuses_as("{\"a\": [1 000]}", RepairKind::Reinterpreted);
    refuses("{\"a\": 1,000}");
    refuses("{\"a\": [1,,2]}");
}

#[test]
fn several_candidates_are_refused() {
    let many = [
        "{\"a\": 1}{\"b\": 2}",
        "{\"a\": 1}\n{\"b\": 2}",
        "It is either {\"a\": 1} or {\"a\": 2}.",
        "It is not {a: 1} but\n```\n{\"a\": 2}\n```",
        "[\"x\"] and {\"a\": 1}",
        "{} or {\"a\": 1}",
        "{\"a\": 1} or {",
    ];
    for input in many {
        assert!(
            matches!(refuses(input), TextRefusal::ManyValues { .. }),
            "{input}: {}",
            refuses(input)
        );
    }
}

#[test]
fn pieces_of_json_are_no_prose() {
    let pieces = [
        "\"a\": 1, \"b\": {\"c\": 2}",
        "{\"a\": {\"b\": 1}}, \"c\": 2}",
        "{\"a\": 1} \"b\": 2",
        "x: 1} {\"a\": 2}",
        "[\"<b>\"</b>\"]",
        "f(1, {\"a\": 2})",
        "f(x={\"a\": 2})",
        "{\"a\": 1}foo",
        "callback {\"a\": 1}",
    ];
    for input in pieces {
        refuses(input);
    }
}

#[test]
fn names_and_values_around_the_document_are_no_prose() {
    for input in [
        "city: Oslo\nfilters: {\"a\": 1}",
        "city='Oslo', opts={'a': 1}",
        "city = Oslo\nopts = {'a': 1}",
        "city: Oslo, opts: {'a': 1}",
        "- **city**: Oslo\n- **opts**: {'a': 1}",
        "**city:** Oslo\n**opts:** {'a': 1}",
        "<parameter name=\"city\">Oslo</parameter><parameter name=\"opts\">{\"a\": 1}</parameter>",
        "{\"city\": \"Oslo\"}\nunits: metric",
        "{\"city\": \"Oslo\"} units=metric",
        "{\"city\": \"Oslo\"}\nunits:",
        "{'a': 1} 'b': 2",
        "{‘a’: 1} ‘b’: 2",
        "{`a`: 1} `b`: 2",
        "{“a”: 1} “b”: 2",
        "'b': 2, 'c': {'a': 1}",
        "city: Oslo\n```json\n{\"a\": 1}\n```",
        "```\ncity: Oslo\nopts: {\"a\": 1}\n```",
        "```\n{\"a\": 1}\n```\ncity: Oslo",
        "city => 'Oslo', opts => {'a': 1}",
        "city=\"\"\n{\"a\": 1}",
        "city: ''\n{\"a\": 1}",
    ] {
        refuses(input);
    }
}

#[test]
fn a_text_without_json_is_refused() {
    for input in [
        "",
        "  ",
        "I can't do that.",
        "<call></call>",
        "[see above]",
        "see {x}",
        "f(a=1)",
    ] {
        refuses(input);
    }
}

#[test]
fn sets_and_lost_keys_are_refused() {
    for input in [
        "{\"a\", \"b\"}",
        "{1, 2}",
        "{:1}",
        "{\"a\"}",
        "{\"a\": 1, 2}",
        "{first name: 1}",
    ] {
        refuses(input);
    }
}

#[test]
fn duplicate_keys_are_left_for_the_strict_parser() {
    let repaired = repair("{a: 1, \"a\": 2,}").unwrap();
    assert_eq!(repaired.text, "{\"a\": 1, \"a\": 2}");
}

#[test]
fn a_comment_that_swallows_the_rest_is_refused() {
    refuses("{\"a\": 1, // note \"b\": 2}");
    refuses("{\"a\": 1 /* \"b\": 2}");
}

#[test]
fn mismatched_closers_are_refused_unless_the_rest_balances() {
    for input in [
        "[{\"a\": {\"b\": 1]",
        "{\"x\": {\"a\": [1, 2}, \"b\": 3}, \"c\": 4}",
        "{\"a\": [1}]",
        "[}",
    ] {
        refuses(input);
    }
}

#[test]
fn a_scalar_root_needs_a_schema_that_allows_it() {
    assert_eq!(any("'x'").unwrap().text, "\"x\"");
    assert_eq!(any("cb(2);").unwrap().text, "2");
    assert_eq!(any(".5").unwrap().text, "0.5");
    assert_eq!(any("\\\"x\\\"").unwrap().text, "\"x\"");
    refuses("'x'");
    assert!(any("1\n2").is_err());
    assert!(any("Take {\"a\": 1} now").is_err());
}

// ---- bounds ------------------------------------------------------------------------------------

#[test]
fn the_depth_is_bounded() {
    let nested =
        |depth: usize| format!("{{\"a\":{}{}", "[".repeat(depth - 1), "]".repeat(depth - 1));
    assert!(repair(&nested(MAX_DEPTH)).is_ok());
    for depth in [MAX_DEPTH + 1, 10_000, 400_000] {
        assert!(matches!(
            refuses(&nested(depth)),
            TextRefusal::TooDeep { .. }
        ));
    }
}

#[test]
fn size_and_number_of_edits_are_bounded() {
    let long = format!("{{\"a\": \"{}\",}}", "x".repeat(MAX_BYTES));
    assert!(matches!(refuses(&long), TextRefusal::TooLarge { .. }));
    let many = format!("{{\"a\": [{}]}}", "True,".repeat(5000));
    assert!(matches!(refuses(&many), TextRefusal::TooManyEdits { .. }));
}

#[test]
fn hostile_text_takes_linear_time() {
    let units = [
        "\"",
        "\\",
        "[",
        "{",
        ",",
        ":",
        "'",
        "`",
        "/*",
        "\"/*",
        "\"+/*",
        "\"+",
        "\" \"",
        "\"„",
        "‚'",
        "//",
        "#",
        "{a",
        "{\"a\":",
        "[\"",
        "\"a\" ",
        "'a' ",
        "{ ",
        "…",
        "“",
        "\\\"",
        "{\\\"",
        "a,",
        "\"a,",
        "```",
        "<",
        "</",
        "(",
        "f(",
        "\u{a0}",
        "1 ",
        ".",
        "-",
        "\\u",
        "\\ud800",
        "\n",
        "\"\n",
        "}",
        "]",
        "{}",
        "{\"a\":1}\n",
        "\"a\":",
        "~~~",
    ];
    for unit in units {
        for opening in [
            "",
            "{\"a\": \"",
            "{\"a\": [",
            "x ",
            "{\"a\": 1} ",
            "{\\\"a\\\": \\\"",
        ] {
            let mut text = opening.to_owned();
            text.push_str(&unit.repeat((80_000 - opening.len()) / unit.len()));
            let start = std::time::Instant::now();
            for policy in [TextPolicy::Arguments, TextPolicy::Preview] {
                for root in [Root::Object, Root::Any] {
                    let _ = repair_text(&text, FinishReason::Normal, policy, root);
                }
            }
            // Linear work takes milliseconds here, quadratic work minutes.
            assert!(
                start.elapsed().as_secs() < 3,
                "{opening}{unit}: {:?}",
                start.elapsed()
            );
        }
    }
}

#[test]
fn refusals_read_as_sentences() {
    assert_eq!(
        refuses("{\"a\": \"x").to_string(),
        "the text is cut off at byte 8: send the whole value again"
    );
    assert_eq!(
        refuses("{\"a\": x}").to_string(),
        "at byte 6: text without quotes"
    );
    assert_eq!(
        refuses("{}\n{}").to_string(),
        "a second value starts at byte 3: send exactly one"
    );
}

// ---- preview -----------------------------------------------------------------------------------

#[test]
fn a_preview_shows_what_is_there() {
    let shown = |input: &str| -> Value {
        let policy = TextPolicy::Preview;
        let repaired = repair_text(input, FinishReason::Unknown, policy, Root::Object).unwrap();
        assert_eq!(
            replay(input, &repaired.events).as_deref(),
            Some(&*repaired.text)
        );
        serde_json::from_str(&repaired.text).expect(&repaired.text)
    };
    assert_eq!(shown("{\"a\": \"hel"), json!({"a": "hel"}));
    assert_eq!(shown("{\"a\": [1, 2"), json!({"a": [1, 2]}));
    assert_eq!(
        shown("{\"a\": hello, \"b\":"),
        json!({"a": "hello", "b": null})
    );
    assert_eq!(shown("{\"a\": [1, ...], \"b"), json!({"a": [1], "b": null}));
    assert_eq!(shown("{\"a\": [\"+\"+"), json!({"a": ["", "+\"+"]}));
}

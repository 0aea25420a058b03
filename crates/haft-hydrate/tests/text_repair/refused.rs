//! What is refused, by reason.

use haft_core::{FinishReason, RepairKind};
use haft_hydrate::text::{Root, TextPolicy, TextRefusal, is_truncated, repair_text};
use serde_json::json;

use crate::common::*;

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

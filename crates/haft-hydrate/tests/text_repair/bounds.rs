//! Size, depth, time and number of edits are bounded.

use haft_core::FinishReason;
use haft_hydrate::text::{Root, TextPolicy, TextRefusal, repair_text};
use haft_hydrate::{MAX_BYTES, MAX_DEPTH};

use crate::common::*;

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

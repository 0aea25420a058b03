use haft::json;

use super::*;

fn shown(trace: &haft::Value) -> String {
    let trace: RunTrace = serde_json::from_value(trace.clone()).unwrap();
    let mut out = anstream::StripStream::new(Vec::new());
    print(&mut out, &trace).unwrap();
    let text = String::from_utf8(out.into_inner()).unwrap();
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH, "too long: {line}");
        assert_eq!(line.trim_end(), line);
    }
    text
}

#[test]
fn a_run_is_a_tree_of_turns_and_calls() {
    let text = shown(&json!({
        "object": "response.trace", "response_id": "resp_68b1c7e2a4d04f6f9b1f0a7f5f3d2c11",
        "request_id": "req_1", "model": "default", "started_at": 1_794_812_046.25,
        "duration_ms": 2410.4, "outcome": "completed",
        "usage": {"input_tokens": 12_840, "cached_input_tokens": 9216, "output_tokens": 196,
            "reasoning_tokens": 64, "requests": 4},
        "notes": [
            {"at_ms": 2.0, "kind": "compaction", "duration_ms": 300.5, "outcome": "completed",
                "usage": {"input_tokens": 11_000, "output_tokens": 60, "requests": 1}},
            {"at_ms": 1500.0, "kind": "failover", "from": "near", "to": "far",
                "error": "server_error"},
        ],
        "turns": [
            {"start_ms": 304.0, "first_token_ms": 1120.0, "end_ms": 1216.5,
                "attempts": [
                    {"start_ms": 304.0, "end_ms": 340.0, "error": "rate_limit", "delay_ms": 500},
                    {"start_ms": 840.0, "end_ms": 1216.5},
                ],
                "finish": "tool_calls", "model": "gpt",
                "usage": {"input_tokens": 640, "cached_input_tokens": 512, "output_tokens": 40},
                "calls": [
                    {"call_id": "call_1", "name": "clock", "kind": "haft:clock", "start_ms": 1217.0,
                        "duration_ms": 3.2, "outcome": "succeeded",
                        "hydration": {"outcome": "valid"}, "output_bytes": 34},
                    {"call_id": "call_2", "name": "search", "kind": "haft:search_files",
                        "start_ms": 1217.0, "duration_ms": 241.0, "outcome": "timed_out",
                        "hydration": {"outcome": "repaired",
                            "repairs": ["trailing_comma", "single_quotes"]},
                        "verdict": "approved", "output_bytes": 51},
                    {"call_id": "call_3", "name": "clock", "kind": "haft:clock",
                        "outcome": "invalid_arguments",
                        "hydration": {"outcome": "refused", "errors": ["invalid:type"]},
                        "output_bytes": 1},
                ]},
            {"start_ms": 1459.0, "first_token_ms": 1800.0, "end_ms": 2409.0,
                "attempts": [{"start_ms": 1459.0, "end_ms": 2409.0}], "finish": "tool_calls",
                "usage": {"input_tokens": 1200, "cached_input_tokens": 0, "output_tokens": 96},
                "calls": [
                    {"call_id": "call_4", "name": "a_function_with_a_name_that_is_far_too_long",
                        "kind": "function", "outcome": "handed_over",
                        "hydration": {"outcome": "valid"}},
                ]},
        ],
    }));
    insta::assert_snapshot!(text);
}

#[test]
fn a_run_that_failed_says_why_and_one_under_way_how_far_it_is() {
    let failed = shown(&json!({
        "response_id": "resp_1", "request_id": "req_1", "model": "default",
        "started_at": 1_794_812_046.0, "duration_ms": 12.0, "outcome": "failed",
        "reason": "model_error", "usage": {"requests": 1},
        "notes": [{"at_ms": 11.0, "kind": "truncation"}],
        "turns": [{"start_ms": 0.4, "end_ms": 11.0,
            "attempts": [{"start_ms": 0.4, "end_ms": 11.0, "error": "unauthorized"}]}],
        "calls_omitted": 7,
    }));
    let live = shown(&json!({
        "response_id": "resp_2", "request_id": "req_2", "model": "default",
        "started_at": 1_794_812_046.0, "usage": {"requests": 1},
        "notes": [{"at_ms": 0.0, "kind": "resumed"}],
        "turns": [{"start_ms": 3.0, "end_ms": 125_000.0, "finish": "tool_calls",
            "attempts": [{"start_ms": 3.0, "end_ms": 125_000.0}],
            "calls": [{"call_id": "c", "name": "slow", "kind": "acme:slow", "start_ms": 125_001.0}]}],
    }));
    insta::assert_snapshot!(format!("{failed}\n{live}"));
}

#[test]
fn names_of_others_do_not_steer_the_terminal() {
    let text = shown(&json!({
        "response_id": "resp_\u{1b}[2J", "request_id": "\u{85}", "model": "\u{9b}31m", "outcome": "\u{7}", "duration_ms": 1,
        "turns": [{"calls": [{"name": "\u{1b}]0;t\u{7}", "kind": "\u{202e}"}]}],
    }));
    assert!(
        !text.chars().any(|it| it != '\n' && it.is_control()),
        "{text:?}"
    );
}

#[test]
fn what_happened_to_a_turn_that_was_cut_off_stands_before_the_next() {
    let text = shown(&json!({
        "response_id": "resp_1", "request_id": "req_1", "model": "default", "duration_ms": 90.0,
        "outcome": "completed",
        "notes": [{"at_ms": 40.0, "kind": "resumed"}],
        "turns": [{"start_ms": 1.0}, {"start_ms": 50.0, "end_ms": 90.0}],
    }));
    let place = |words: &str| text.find(words).unwrap();
    assert!(place("turn 1") < place("taken up by"), "{text}");
    assert!(place("taken up by") < place("turn 2"), "{text}");
}

#[test]
fn numbers_and_words_beyond_all_measure_are_shown_all_the_same() {
    let long = "x".repeat(300);
    let text = shown(&json!({
        "response_id": "resp_1", "request_id": long, "model": long, "started_at": 1e300,
        "duration_ms": 1e300, "outcome": "completed", "reason": long, "calls_omitted": u64::MAX,
        "usage": {"input_tokens": u64::MAX, "output_tokens": u64::MAX, "requests": u64::MAX},
        "notes": [{"at_ms": -1e300, "kind": "failover", "from": long, "to": long, "error": long}],
        "turns": [{"start_ms": 1e300, "end_ms": -1e300, "first_token_ms": 1e308, "finish": long,
            "attempts": [{"start_ms": 0, "end_ms": 1e300, "error": long, "delay_ms": u64::MAX}],
            "calls": [{"name": long, "kind": long, "outcome": long, "verdict": long,
                "start_ms": 1e308, "duration_ms": 1e308,
                "hydration": {"outcome": long, "errors": [long, long]}}]}],
    }));
    assert!(text.contains("turn 1"), "{text}");
}

#[test]
fn times_and_numbers_are_short() {
    for (milliseconds, told) in [
        (0.0, "0.0ms"),
        (9.94, "9.9ms"),
        (9.96, "10ms"),
        (999.4, "999ms"),
        (999.6, "1.0s"),
        (61_000.0, "61.0s"),
        (125_000.0, "2m05s"),
        (7_260_000.0, "2h01m"),
        (864_000_000.0, "10d"),
        (1e300, "ages"),
    ] {
        assert_eq!(time(milliseconds), told);
    }
    assert_eq!(grouped(0), "0");
    assert_eq!(grouped(1_234_567), "1,234,567");
}

#[test]
fn a_bar_lies_where_its_time_does() {
    assert_eq!(bar(0.0, 100.0, 100.0), "█".repeat(BAR));
    assert_eq!(bar(50.0, 0.0, 100.0).trim(), "▏");
    assert_eq!(bar(100.0, 0.0, 100.0).chars().count(), BAR);
    assert_eq!(bar(1.0, 1.0, 0.0), "");
    assert_eq!(bar(0.0, 1e9, 1.0).chars().count(), BAR);
}

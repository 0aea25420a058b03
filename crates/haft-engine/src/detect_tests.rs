use super::*;

/// One call per letter; the letter is the tool, the arguments are always the same.
fn reports(options: &LoopDetection, calls: &str) -> Vec<String> {
    let mut detector = LoopDetector::new(options.clone());
    let mut found = Vec::new();
    for (at, tool) in calls.chars().enumerate() {
        // A detector that was written down and read again goes on where it was.
        let stored = serde_json::to_string(&detector).unwrap();
        detector = serde_json::from_str(&stored).unwrap();
        if let Some(report) = detector.check(&tool.to_string(), &"{}".into()) {
            let what = match &report.kind {
                LoopKind::Exact { tool, count, .. } => format!("exact {count} ({tool})"),
                LoopKind::Pattern { tools } => format!("pattern {}", tools.concat()),
                LoopKind::SameResult { .. } => unreachable!("no call has finished"),
            };
            found.push(format!("#{} {what} {:?}", at + 1, report.action));
        }
    }
    found
}

#[test]
fn the_golden_sequences_are_reported_as_written() {
    let table: [(&str, &[&str]); 17] = [
        ("AAA", &[]),
        ("ABAB", &[]),
        ("AAABBB", &[]),
        ("ABCDABCDA", &[]),
        ("AAAA", &["#4 exact 4 (A) Warn"]),
        (
            "AAAAAA",
            &[
                "#4 exact 4 (A) Warn",
                "#5 exact 5 (A) Warn",
                "#6 exact 6 (A) Terminate",
            ],
        ),
        ("ABABA", &["#5 pattern AB Warn"]),
        (
            "ABABABA",
            &[
                "#5 pattern AB Warn",
                "#6 pattern BA Warn",
                "#7 exact 4 (A) Terminate",
            ],
        ),
        ("ABCABCA", &["#7 pattern ABC Warn"]),
        (
            "ABCABCABC",
            &[
                "#7 pattern ABC Warn",
                "#8 pattern BCA Warn",
                "#9 pattern CAB Terminate",
            ],
        ),
        ("AABAABA", &["#5 exact 4 (A) Warn", "#7 exact 5 (A) Warn"]),
        ("ABBABBA", &["#6 exact 4 (B) Warn", "#7 pattern ABB Warn"]),
        (
            "AABBAABBA",
            &[
                "#6 exact 4 (A) Warn",
                "#8 exact 4 (B) Warn",
                "#9 exact 5 (A) Terminate",
            ],
        ),
        ("ABACADAEA", &["#7 exact 4 (A) Warn", "#9 exact 5 (A) Warn"]),
        ("AAA1234567A", &["#11 exact 4 (A) Warn"]),
        ("AAA12345678A", &[]),
        ("AAABCDEFGHIJA", &[]),
    ];
    for (calls, expected) in table {
        assert_eq!(
            reports(&LoopDetection::default(), calls),
            expected,
            "{calls}"
        );
    }
}

#[test]
fn the_options_change_what_is_reported() {
    let with = |change: fn(&mut LoopDetection)| {
        let mut options = LoopDetection::default();
        change(&mut options);
        options
    };
    let none: [&str; 0] = [];
    let once = with(|options| options.max_exact = 1);
    assert_eq!(reports(&once, "AA"), ["#2 exact 2 (A) Warn"]);
    let never = with(|options| options.max_exact = 0);
    assert_eq!(reports(&never, "A"), ["#1 exact 1 (A) Warn"]);
    let single = with(|options| (options.min_len, options.max_exact) = (1, 9));
    assert_eq!(reports(&single, "AAA"), ["#3 pattern A Warn"]);
    let no_patterns = with(|options| options.patterns = false);
    assert_eq!(reports(&no_patterns, "ABABA"), none);
    let longer = with(|options| options.max_len = 4);
    assert_eq!(reports(&longer, "ABCDABCDA"), ["#9 pattern ABCD Warn"]);
    let narrow = with(|options| options.exact_window = 3);
    assert_eq!(reports(&narrow, "AABA1A"), none);
    assert_eq!(reports(&LoopDetection::off(), "AAAAAAAA"), none);
    let quiet = with(|options| options.actions = [LoopAction::Ignore; 3]);
    assert_eq!(reports(&quiet, "AAAA"), ["#4 exact 4 (A) Ignore"]);
    let zero_lengths = with(|options| (options.min_len, options.max_exact) = (0, 9));
    assert_eq!(reports(&zero_lengths, "AAA"), ["#3 pattern A Warn"]);
}

/// R28: `within the last n calls`, because they need not be adjacent.
#[test]
fn warnings_read_as_written() {
    let mut detector = LoopDetector::new(LoopDetection::default());
    for _ in 0..3 {
        detector.check("search", &"{}".into());
    }
    let report = detector.check("search", &"{}".into()).unwrap();
    assert_eq!(
        report.warning(),
        "[loop warning 1] 'search' was called with identical arguments 4 times within the last \
         11 calls. Change something or answer with what you have."
    );
    assert_eq!(
        report.sentence(),
        "'search' was called with identical arguments 4 times within the last 11 calls."
    );

    let mut detector = LoopDetector::new(LoopDetection::default());
    let report = ["a", "b", "a", "b", "a"]
        .iter()
        .find_map(|tool| detector.check(tool, &"{}".into()))
        .unwrap();
    assert_eq!(
        report.warning(),
        "[loop warning 1] The call sequence a, b keeps repeating. Break it or answer with what \
         you have."
    );
}

#[test]
fn calls_are_equal_by_their_json_and_not_by_their_text() {
    let equal = [
        (
            r#"{"a":1,"b":{"c":2,"d":3}}"#,
            r#" { "b":{"d":3,"c":2}, "a":1 } "#,
        ),
        ("", "{}"),
        (" \n", "null"),
        (r#"{"a":"\u0041"}"#, r#"{"a":"A"}"#),
        ("{oops", "{oops"),
    ];
    for (one, other) in equal {
        let (one, other) = (
            call_digest("t", &one.into()),
            call_digest("t", &other.into()),
        );
        assert_eq!(one, other);
    }
    let different = [
        (r#"{"a":1}"#, r#"{"a":1.0}"#),
        (r#"{"a":1}"#, r#"{"a":"1"}"#),
        (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#),
        (r#"{"a":null}"#, "{}"),
        ("{oops", "{oops "),
    ];
    for (one, other) in different {
        let digests = (
            call_digest("t", &one.into()),
            call_digest("t", &other.into()),
        );
        assert_ne!(digests.0, digests.1, "{one} {other}");
    }
    let value = serde_json::json!({"b": 2, "a": 1});
    assert_eq!(
        call_digest("t", &value.into()),
        call_digest("t", &r#"{"a":1,"b":2}"#.into())
    );
    assert_ne!(
        call_digest("t", &"{}".into()),
        call_digest("u", &"{}".into())
    );
}

#[test]
fn the_memory_is_bounded_by_the_window_and_holds_no_arguments() {
    let mut detector = LoopDetector::new(LoopDetection {
        same_result: true,
        ..LoopDetection::default()
    });
    for at in 0..1000 {
        let arguments = RawArguments::Text(format!("{{\"secret\":{at}}}"));
        detector.check(&"x".repeat(5000), &arguments);
        detector.finished("x", &arguments, "hunter2");
    }
    let stored = serde_json::to_string(&detector).unwrap();
    assert!(stored.len() < 10_000 && !stored.contains("secret") && !stored.contains("hunter2"));
}

#[test]
fn the_same_result_is_reported_from_the_third_time_on_and_numbered_on_its_own() {
    let mut detector = LoopDetector::new(LoopDetection {
        same_result: true,
        ..LoopDetection::default()
    });
    let arguments = "{}".into();
    assert_eq!(detector.finished("search", &arguments, "none"), None);
    assert_eq!(detector.finished("search", &arguments, "none"), None);
    assert_eq!(detector.finished("search", &arguments, "one"), None);
    let report = detector.finished("search", &arguments, "none").unwrap();
    assert_eq!(
        report.warning(),
        "[loop warning 1] 'search' gave the same result 3 times for identical arguments. Change \
         something or answer with what you have."
    );
    for _ in 0..4 {
        detector.check("search", &arguments);
    }
    let actions: Vec<_> = (0..3)
        .filter_map(|_| detector.finished("search", &arguments, "none"))
        .map(|report| (report.number, report.action))
        .collect();
    assert_eq!(
        actions,
        [
            (2, LoopAction::Warn),
            (3, LoopAction::Terminate),
            (4, LoopAction::Terminate)
        ]
    );
}

#[test]
fn the_same_result_is_not_looked_for_unless_asked_and_not_beyond_the_window() {
    let arguments = "{}".into();
    let mut off = LoopDetector::new(LoopDetection::default());
    assert!((0..9).all(|_| off.finished("t", &arguments, "x").is_none()));
    let mut narrow = LoopDetector::new(LoopDetection {
        same_result: true,
        exact_window: 3,
        ..LoopDetection::default()
    });
    for result in ["x", "1", "2", "x", "3", "x"] {
        // The third `x` sees only one of the others within its window.
        assert_eq!(narrow.finished("t", &arguments, result), None);
    }
}

#[test]
fn options_are_read_from_configuration() {
    let options: LoopDetection = serde_json::from_str(
        r#"{"patterns": false, "actions": ["ignore", "warn", "terminate"], "same_result": true}"#,
    )
    .unwrap();
    assert!(options.enabled && !options.patterns && options.same_result);
    assert_eq!(options.actions[0], LoopAction::Ignore);
    assert!(serde_json::from_str::<LoopDetection>(r#"{"max_exakt": 3}"#).is_err());
}

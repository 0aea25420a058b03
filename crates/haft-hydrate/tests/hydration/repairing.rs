//! One audited repair, off unless switched on.

use haft_core::{FinishReason, ToolCall, Trust};
use haft_hydrate::{CallIds, Hydrator};
use serde_json::json;

use crate::common::*;

#[test]
fn nothing_is_coerced_while_repair_is_off() {
    for text in [
        r#"{"location": 5}"#,
        r#"{"location": "Oslo", "days": "3"}"#,
        r#"{"location": "Oslo", "days": 2.5}"#,
        r#"{"location": "Oslo", "unit": "CELSIUS"}"#,
        r#"{"location": "Oslo", "days": null}"#,
        r#"{"location": "Oslo",}"#,
        r#"{"arguments": {"location": "Oslo"}}"#,
    ] {
        let result = hydrate(text);
        assert!(!result.success(), "{text}");
        assert_eq!(result.provenance.repair, None, "{text}");
    }
}

#[test]
fn a_repair_is_audited_edit_by_edit() {
    let result = repair(r#"{"location": "Oslo", "days": "3",}"#);
    assert!(result.success(), "{:?}", result.errors);
    assert_eq!(result.trust(), Trust::Repaired);
    assert_eq!(
        result.provenance.parsed, None,
        "what did not parse was not parsed"
    );
    assert_eq!(
        result.provenance.validated,
        Some(json!({"location": "Oslo", "days": 3}))
    );
    let record = serde_json::to_value(result.provenance.repair.unwrap()).unwrap();
    assert_eq!(
        record,
        json!({
            "by": "haft-audited",
            "stage": "parse",
            "before": "{\"location\": \"Oslo\", \"days\": \"3\",}",
            "after": "{\"location\":\"Oslo\",\"days\":3}",
            "ok": true,
            "events": [
                {"kind": "trailing_comma", "path": "/days", "offset": 32, "before": ",", "after": ""},
                {"kind": "parsed_literal", "path": "/days", "before": "\"3\"", "after": "3"}
            ]
        })
    );
}

#[test]
fn a_failed_repair_keeps_the_original_errors_and_its_record() {
    let result = repair(r#"{"unit": "CELSIUS"}"#);
    assert_eq!(
        messages(&result),
        [
            "missing field 'location'",
            "'unit' must be one of celsius, fahrenheit",
            "repair failed",
        ]
    );
    let record = result.provenance.repair.unwrap();
    assert!(!record.ok);
    assert_eq!(record.events.len(), 1);
    assert_eq!(record.refusal.as_deref(), Some("missing field 'location'"));
    assert!(!result.provenance.repaired);
}

#[test]
fn what_was_cut_off_is_refused_even_with_repair_on() {
    for text in [
        r#"{"location": "Os"#,
        r#"{"location": "Oslo", "uni"#,
        r#"{"location": "Oslo", "days": "#,
        r#"{"location"#,
    ] {
        let result = repair(text);
        assert_eq!(
            messages(&result),
            ["the arguments were cut off", "repair failed"],
            "{text}"
        );
    }
}

#[test]
fn closers_are_appended_only_after_a_normal_stop() {
    let tools = table([echo(weather())]);
    let hydrator = Hydrator::new().with_audited_repair();
    let mut ids = CallIds::default();
    let mut accepted = |text: &str, finish| {
        let call = ToolCall::new("get_current_weather", text).finished(finish);
        hydrator.hydrate(&call, &tools[..], &mut ids).success()
    };
    let after_string = r#"{"location": "Oslo""#;
    let after_number = r#"{"location": "Oslo", "days": 5"#;
    assert!(accepted(after_string, FinishReason::Normal));
    assert!(!accepted(after_string, FinishReason::Unknown));
    assert!(!accepted(after_string, FinishReason::Length));
    assert!(accepted(after_number, FinishReason::Normal));
    for finish in [
        FinishReason::Length,
        FinishReason::Unknown,
        FinishReason::Error,
        FinishReason::ContentFilter,
    ] {
        assert!(!accepted(after_number, finish), "{finish:?}");
    }
}

#[test]
fn duplicate_keys_are_never_resolved_by_repair() {
    for text in [
        r#"{"location": "a", "location": "b"}"#,
        r#"{"location": "a", "location": "b",}"#,
        r#"{'location': 'a', "location": 'b'}"#,
    ] {
        assert!(!repair(text).success(), "{text}");
    }
}

#[test]
fn edits_made_until_a_refusal_are_recorded() {
    let result = repair(r"{'location': 'x', days: NaN}");
    let record = result.provenance.repair.unwrap();
    assert!(!record.ok);
    assert!(record.events.len() >= 4, "{:?}", record.events);
}

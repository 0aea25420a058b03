//! What a call is read as, and what is wrong with it.

use haft_core::{
    ErrorCode, RawArguments, Stage, ToolCall, ToolContext, ToolDefinition, Trust, ValidatorFactory,
};
use haft_hydrate::{CallIds, Hydrator, JsonSchemaFactory};
use serde_json::json;

use crate::common::*;

#[test]
fn a_valid_call_comes_out_as_it_was_written() {
    for text in [
        r#"{"location":"Oslo","days":3}"#,
        " \n{ \"location\" : \"Oslo\", \"days\": 3 }\t",
        "\u{feff}{\"location\":\"Oslo\",\"days\":3}",
    ] {
        let result = hydrate(text);
        assert!(result.success(), "{text}: {:?}", result.errors);
        assert_eq!(result.trust(), Trust::Validated);
        assert_eq!(
            result.provenance.original_raw_args,
            RawArguments::Text(text.into())
        );
        assert_eq!(
            result.provenance.validated,
            Some(json!({"location": "Oslo", "days": 3}))
        );
        assert_eq!(result.provenance.repair, None);
    }
}

#[test]
fn an_object_from_the_provider_needs_no_text() {
    let arguments = json!({"location": "Oslo"});
    let result = hydrate(arguments.clone());
    assert!(result.success());
    assert_eq!(
        result.provenance.original_raw_args,
        RawArguments::Json(arguments)
    );
}

#[tokio::test]
async fn a_hydrated_call_runs_with_exactly_the_validated_arguments() {
    let result = hydrate(r#"{"location":"Oslo","days":3.0}"#);
    let output = result
        .tool
        .unwrap()
        .run(&ToolContext::default())
        .await
        .unwrap();
    assert_eq!(
        output.as_value(),
        Some(&json!({"location": "Oslo", "days": 3.0}))
    );
}

#[test]
fn the_plain_parse_reads_double_encoding_and_single_quotes_without_a_flag() {
    for text in [
        r#""{\"location\": \"Oslo\"}""#,
        "{'location': 'Oslo'}",
        r#""{'location': 'Oslo'}""#,
    ] {
        let result = hydrate(text);
        assert!(result.success(), "{text}");
        assert!(!result.provenance.repaired);
        assert_eq!(
            result.provenance.validated,
            Some(json!({"location": "Oslo"}))
        );
    }
    let escaped = hydrate(r"{'location': 'Land\'s End'}");
    assert_eq!(
        escaped.provenance.validated,
        Some(json!({"location": "Land's End"}))
    );
}

#[test]
fn empty_text_and_null_are_an_empty_object_and_nothing_more() {
    for empty in [
        json!(""),
        json!("  \n"),
        json!("null"),
        json!(null),
        json!({}),
    ] {
        let result = hydrate(empty);
        assert_eq!(result.provenance.parsed, Some(json!({})));
        assert_eq!(messages(&result), ["missing field 'location'"]);
    }
}

#[test]
fn each_parse_error_has_its_own_code() {
    let deep = format!("{{\"location\":{}1{}}}", "[".repeat(128), "]".repeat(128));
    let large = format!("{{\"location\":\"{}\"}}", "x".repeat(1024 * 1024));
    let cases = [
        (
            "{\"location\": Oslo}",
            ErrorCode::InvalidJson {
                line: 1,
                column: 14,
            },
        ),
        (
            "{\n  \"location\": 'Oslo\"}",
            ErrorCode::InvalidJson {
                line: 2,
                column: 15,
            },
        ),
        ("{\"location\": \"Os", ErrorCode::Truncated),
        ("{\"location\": \"Oslo\"", ErrorCode::Truncated),
        ("[1]", ErrorCode::NotAnObject),
        ("7", ErrorCode::NotAnObject),
        ("\"\\\"x\\\"\"", ErrorCode::NotAnObject),
        (
            "{\"location\":\"a\",\"location\":\"b\"}",
            ErrorCode::DuplicateKey {
                key: "location".into(),
            },
        ),
        (deep.as_str(), ErrorCode::TooDeep),
        (large.as_str(), ErrorCode::TooLarge),
        (
            "{\"location\":\"a\",\"days\":1e400}",
            ErrorCode::NumberOutOfRange,
        ),
        (
            "{\"location\":\"a\",\"days\":99999999999999999999999}",
            ErrorCode::NumberOutOfRange,
        ),
        (
            "{\"location\":\"a\",\"days\":9007199254740993.0}",
            ErrorCode::NumberOutOfRange,
        ),
        (
            "{\"location\":\"a\",\"days\":12345678901234567891e0}",
            ErrorCode::NumberOutOfRange,
        ),
        (
            "{\"location\":\"a\",\"days\":1e-400}",
            ErrorCode::NumberOutOfRange,
        ),
    ];
    for (text, code) in cases {
        let result = hydrate(text);
        assert_eq!(result.errors.len(), 1);
        assert_eq!(result.errors[0].stage, Stage::Parse);
        assert_eq!(
            result.errors[0].detail,
            code,
            "{}",
            &text[..text.len().min(60)]
        );
        assert_eq!(
            result.provenance.original_raw_args,
            RawArguments::Text(text.into())
        );
    }
}

#[test]
fn depth_128_and_64_bit_integers_are_kept() {
    let definition = ToolDefinition::builder("any")
        .parameters(json!({"type": "object"}))
        .build()
        .unwrap();
    let tools = table([echo(definition)]);
    let at_the_bound = format!("{{\"a\":{}{}}}", "[".repeat(127), "]".repeat(127));
    for text in [
        at_the_bound.as_str(),
        r#"{"a":9007199254740993,"b":18446744073709551615,"c":-9223372036854775808}"#,
        r#"{"a":0.1,"b":1e300,"c":123456.789,"d":-0.0}"#,
    ] {
        let result = Hydrator::new().hydrate(
            &ToolCall::new("any", text),
            &tools[..],
            &mut CallIds::default(),
        );
        let validated = result.provenance.validated.expect(text);
        let normal = validated.to_string().replace("1e300", "1e+300");
        assert_eq!(normal, text.replace("1e300", "1e+300"));
    }
}

#[test]
fn all_validation_errors_are_collected_and_sorted_by_field() {
    let result = hydrate(r#" {"unit":"kelvin","zz":1,"days":"2"} "#);
    assert_eq!(
        messages(&result),
        [
            "'days' must be integer, got string",
            "missing field 'location'",
            "'unit' must be one of celsius, fahrenheit",
            "unexpected field 'zz'",
        ]
    );
    assert!(
        result
            .errors
            .iter()
            .all(|error| error.stage == Stage::Validate)
    );
    assert_eq!(
        result.provenance.parsed,
        Some(json!({"unit":"kelvin","zz":1,"days":"2"}))
    );
    assert_eq!(result.provenance.validated, None);
}

#[test]
fn errors_name_nested_fields_as_people_write_them() {
    let definition = ToolDefinition::builder("nested")
        .parameters(json!({"type": "object", "properties": {"a": {
            "type": "object",
            "properties": {"b": {"type": "array", "items": {"type": "integer"}}, "c": {"type": "string"}},
            "required": ["d"]
        }}}))
        .build()
        .unwrap();
    let tools = table([echo(definition)]);
    let call = ToolCall::new("nested", r#"{"a": {"b": [1, "x"], "c": null}}"#);
    let result = Hydrator::new().hydrate(&call, &tools[..], &mut CallIds::default());
    assert_eq!(
        messages(&result),
        [
            "'a.b[1]' must be integer, got string",
            "'a.c' must not be null",
            "missing field 'a.d'",
        ]
    );
    let ErrorCode::Invalid(detail) = &result.errors[0].detail else {
        panic!("{:?}", result.errors[0].detail);
    };
    assert_eq!(
        (detail.path.as_str(), detail.keyword.as_str()),
        ("/a/b/1", "type")
    );
}

#[test]
fn format_is_an_annotation() {
    let schema = json!({"type": "string", "format": "email"});
    assert!(
        JsonSchemaFactory
            .compile(&schema)
            .unwrap()
            .is_valid(&json!("no address"))
    );
}

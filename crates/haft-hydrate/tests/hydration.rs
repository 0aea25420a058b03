//! Hydration: one result per call, never a panic, provenance always.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use haft_core::{
    CallSource, CompiledAt, ErrorCode, FinishReason, HydratedTool, HydrationResult,
    InstantiateError, NoSchemaMode, Provenance, RawArguments, SchemaError, Stage, ToolCall,
    ToolContext, ToolDefinition, ToolObject, Trust, ValidationError, Validator, ValidatorFactory,
    dynamic_tool,
};
use haft_hydrate::{
    AuditedRepairer, CallIds, Compile, Hydrator, JsonLinesSink, JsonSchemaFactory, PreparedTool,
    RepairRefused, RepairRequest, Repaired, Repairer, ValidatorCache,
};
use serde_json::{Value, json};

fn weather() -> Arc<ToolDefinition> {
    ToolDefinition::builder("get_current_weather")
        .description("Get the current weather for a location.")
        .parameters(json!({
            "type": "object",
            "properties": {
                "location": {"type": "string"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                "days": {"type": "integer"}
            },
            "required": ["location"],
            "additionalProperties": false
        }))
        .build()
        .unwrap()
}

fn echo(definition: Arc<ToolDefinition>) -> Arc<dyn ToolObject> {
    dynamic_tool(definition, |arguments, _| async move { Ok(arguments) })
}

fn table(tools: impl IntoIterator<Item = Arc<dyn ToolObject>>) -> Vec<PreparedTool> {
    let cache = ValidatorCache::default();
    tools
        .into_iter()
        .map(|tool| PreparedTool::new(tool, &cache, Compile::Early).unwrap())
        .collect()
}

fn hydrate(arguments: impl Into<RawArguments>) -> HydrationResult {
    hydrate_with(&Hydrator::new(), arguments)
}

fn repair(arguments: impl Into<RawArguments>) -> HydrationResult {
    hydrate_with(&Hydrator::new().with_audited_repair(), arguments)
}

fn hydrate_with(hydrator: &Hydrator, arguments: impl Into<RawArguments>) -> HydrationResult {
    let call = ToolCall::new("get_current_weather", arguments).finished(FinishReason::Normal);
    let tools = table([echo(weather())]);
    hydrator.hydrate(&call, &tools[..], &mut CallIds::default())
}

fn messages(result: &HydrationResult) -> Vec<&str> {
    result
        .errors
        .iter()
        .map(|error| error.message.as_str())
        .collect()
}

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
fn a_batch_gives_one_result_per_call_in_order() {
    let schemaless = ToolDefinition::builder("anything")
        .no_schema(NoSchemaMode::HumanApproval)
        .build()
        .unwrap();
    let tools = table([echo(weather()), echo(schemaless)]);
    let calls = [
        ToolCall::new("get_current_weather", r#"{"location":"Oslo"}"#).with_id("a"),
        ToolCall::new("no_such_tool", r#"{"x":1}"#).with_id("a"),
        ToolCall::new("get_current_weather", "not json"),
        ToolCall::new("anything", r#"{"free": ["form"]}"#).with_id("b"),
        ToolCall::new("anything", "[]"),
    ];
    let results = Hydrator::new().hydrate_all(&calls, &tools[..], &mut CallIds::default());
    let successes: Vec<_> = results.iter().map(HydrationResult::success).collect();
    assert_eq!(successes, [true, false, false, true, false]);
    let ids: Vec<_> = results
        .iter()
        .map(|result| result.provenance.call_id.as_str())
        .collect();
    assert_eq!(ids, ["a", "call_1", "call_2", "b", "call_3"]);

    assert_eq!(messages(&results[1]), ["unknown tool 'no_such_tool'"]);
    assert_eq!(results[1].errors[0].stage, Stage::Instantiate);
    assert_eq!(results[1].provenance.parsed, Some(json!({"x": 1})));
    assert_eq!(results[1].provenance.tool_name, None);

    let free = &results[3].provenance;
    assert_eq!(results[3].trust(), Trust::Unvalidated);
    assert_eq!(
        (free.validator.clone(), free.validated.clone()),
        (None, None)
    );
    assert_eq!(free.no_schema_mode, Some(NoSchemaMode::HumanApproval));
}

#[test]
fn the_json_form_is_the_one_of_the_reference() {
    let tools = table([echo(weather())]);
    let call = ToolCall::new("get_current_weather", " {\"unit\":\"kelvin\"} ")
        .with_id("call_1")
        .from_source(CallSource {
            provider: "openai".into(),
            model: "gpt".into(),
            ..CallSource::default()
        });
    let result = Hydrator::new().hydrate(&call, &tools[..], &mut CallIds::default());
    let mut json = result.to_json();
    let provenance = json["provenance"].as_object_mut().unwrap();
    let at = provenance.remove("at").unwrap();
    assert!(at.as_str().unwrap().ends_with('Z'), "{at}");
    assert!(
        provenance["validator"]
            .as_object_mut()
            .unwrap()
            .remove("elapsedUs")
            .is_some()
    );
    assert_eq!(
        json,
        json!({
            "tool": null,
            "success": false,
            "errors": [
                {
                    "stage": "validate",
                    "message": "missing field 'location'",
                    "detail": {"code": "invalid", "path": "", "keyword": "required"}
                },
                {
                    "stage": "validate",
                    "message": "'unit' must be one of celsius, fahrenheit",
                    "detail": {
                        "code": "invalid", "path": "/unit", "keyword": "enum",
                        "expected": "celsius, fahrenheit", "actual": "kelvin"
                    }
                }
            ],
            "provenance": {
                "providerToolId": "get_current_weather",
                "callId": "call_1",
                "toolName": "get_current_weather",
                "definitionFingerprint": weather().fingerprint(),
                "originalRawArgs": " {\"unit\":\"kelvin\"} ",
                "parsed": {"unit": "kelvin"},
                "validator": {
                    "name": "haft-jsonschema",
                    "version": env!("CARGO_PKG_VERSION"),
                    "compiledAt": "registration"
                },
                "repaired": false,
                "source": {"provider": "openai", "model": "gpt"}
            }
        })
    );
}

#[test]
fn every_result_reaches_the_sink_before_it_is_returned() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let hydrator = Hydrator::new().with_sink(Arc::new(move |result: &HydrationResult| {
        kept.lock().unwrap().push(result.success());
    }));
    hydrate_with(&hydrator, r#"{"location":"Oslo"}"#);
    hydrate_with(&hydrator, "broken");
    assert_eq!(*seen.lock().unwrap(), [true, false]);
}

#[test]
fn json_lines_are_kept_one_per_call() {
    let path = std::env::temp_dir().join(format!("haft-provenance-{}.jsonl", std::process::id()));
    let sink = Arc::new(JsonLinesSink::append(&path).unwrap());
    let hydrator = Hydrator::new().with_sink(sink);
    hydrate_with(&hydrator, r#"{"location":"Os\nlo"}"#);
    hydrate_with(&hydrator, "broken\nline");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["success"], json!(true));
    assert_eq!(
        lines[1]["provenance"]["originalRawArgs"],
        json!("broken\nline")
    );
}

#[test]
fn plugged_in_code_that_panics_fails_its_call_only() {
    struct Panics;
    impl Repairer for Panics {
        fn name(&self) -> &'static str {
            "panics"
        }
        fn repair(&self, _: &RepairRequest<'_>) -> Result<Repaired, RepairRefused> {
            panic!("repairer")
        }
    }
    impl Validator for Panics {
        fn validate(&self, _: &Value) -> Vec<ValidationError> {
            panic!("validator")
        }
    }
    impl ToolObject for Panics {
        fn definition(&self) -> &Arc<ToolDefinition> {
            static DEFINITION: std::sync::LazyLock<Arc<ToolDefinition>> =
                std::sync::LazyLock::new(weather);
            &DEFINITION
        }
        fn instantiate(&self, _: &Value) -> Result<Box<dyn HydratedTool>, InstantiateError> {
            panic!("tool")
        }
    }
    let tools = table([Arc::new(Panics) as Arc<dyn ToolObject>]);
    let good = ToolCall::new("get_current_weather", r#"{"location":"Oslo"}"#);
    let result = Hydrator::new().hydrate(&good, &tools[..], &mut CallIds::default());
    assert_eq!(result.errors[0].stage, Stage::Instantiate);

    let tools = [tools[0].with_validator(Arc::new(Panics))];
    let result = Hydrator::new().hydrate(&good, &tools[..], &mut CallIds::default());
    assert_eq!(messages(&result), ["the validator panicked: validator"]);

    let hydrator = Hydrator::new()
        .with_repairer(Arc::new(Panics))
        .with_sink(Arc::new(|_: &HydrationResult| panic!("sink")));
    let result = hydrate_with(&hydrator, "{");
    assert_eq!(
        messages(&result),
        ["the arguments were cut off", "repair failed"]
    );
}

#[test]
fn a_repairer_is_called_at_most_once_and_its_result_validated() {
    struct Stubborn(AtomicUsize);
    impl Repairer for Stubborn {
        fn name(&self) -> &'static str {
            "stubborn"
        }
        fn repair(&self, _: &RepairRequest<'_>) -> Result<Repaired, RepairRefused> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(Repaired {
                value: json!({"location": 5}),
                text: "still wrong".into(),
                events: Vec::new(),
            })
        }
    }
    let stubborn = Arc::new(Stubborn(AtomicUsize::new(0)));
    let hydrator = Hydrator::new().with_repairer(stubborn.clone());
    assert!(!hydrate_with(&hydrator, "{}").success());
    assert_eq!(stubborn.0.load(Ordering::SeqCst), 1);
    assert!(hydrate_with(&hydrator, r#"{"location":"Oslo"}"#).success());
    assert_eq!(
        stubborn.0.load(Ordering::SeqCst),
        1,
        "a valid call is not repaired"
    );
}

struct Counting(AtomicUsize);

impl ValidatorFactory for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }
    fn compile(&self, schema: &Value) -> Result<Arc<dyn Validator>, SchemaError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(20));
        JsonSchemaFactory.compile(schema)
    }
}

#[test]
fn a_late_validator_is_compiled_once_under_64_concurrent_hydrations() {
    let factory = Arc::new(Counting(AtomicUsize::new(0)));
    let cache = ValidatorCache::new(factory.clone());
    let tools = [PreparedTool::new(echo(weather()), &cache, Compile::Late).unwrap()];
    assert_eq!(factory.0.load(Ordering::SeqCst), 0, "late means not yet");
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                let call = ToolCall::new("get_current_weather", r#"{"location":"Oslo"}"#);
                let result = Hydrator::new().hydrate(&call, &tools[..], &mut CallIds::default());
                let validator = result.provenance.validator.unwrap();
                assert_eq!(validator.name, "counting");
                assert_eq!(validator.compiled_at, CompiledAt::Hydration);
            });
        }
    });
    assert_eq!(factory.0.load(Ordering::SeqCst), 1);
    let again = PreparedTool::new(echo(weather()), &cache, Compile::Early).unwrap();
    assert_eq!(
        factory.0.load(Ordering::SeqCst),
        1,
        "same definition, same validator"
    );
    drop((tools, again));
    PreparedTool::new(echo(weather()), &cache, Compile::Early).unwrap();
    assert_eq!(
        factory.0.load(Ordering::SeqCst),
        2,
        "unused validators are let go"
    );
}

#[test]
fn a_validator_attached_to_one_tool_wins_and_is_named() {
    struct NoOslo;
    impl Validator for NoOslo {
        fn name(&self) -> Option<&str> {
            Some("no-oslo")
        }
        fn validate(&self, arguments: &Value) -> Vec<ValidationError> {
            let refused = arguments["location"] == "Oslo";
            refused
                .then(|| ValidationError::new("/location", "custom", "'location' must not be Oslo"))
                .into_iter()
                .collect()
        }
    }
    let tools = table([echo(weather())]);
    let tools = [tools[0].with_validator(Arc::new(NoOslo))];
    let hydrate = |text: &str| {
        let call = ToolCall::new("get_current_weather", text);
        Hydrator::new().hydrate(&call, &tools[..], &mut CallIds::default())
    };
    let refused = hydrate(r#"{"location":"Oslo"}"#);
    assert_eq!(messages(&refused), ["'location' must not be Oslo"]);
    assert_eq!(refused.provenance.validator.unwrap().name, "no-oslo");
    assert!(
        hydrate(r#"{"anything": "else"}"#).success(),
        "the schema is not asked"
    );
}

#[test]
fn early_and_late_give_the_same_verdict() {
    let cache = ValidatorCache::default();
    for text in [
        r#"{"location":"Oslo"}"#,
        r#"{"location":1}"#,
        "{}",
        "nonsense",
    ] {
        let verdicts = [Compile::Early, Compile::Late].map(|compile| {
            let tools = [PreparedTool::new(echo(weather()), &cache, compile).unwrap()];
            let call = ToolCall::new("get_current_weather", text);
            let result = Hydrator::new().hydrate(&call, &tools[..], &mut CallIds::default());
            (result.success(), result.errors)
        });
        assert_eq!(verdicts[0], verdicts[1], "{text}");
    }
}

#[test]
fn the_bundled_repairer_has_a_name() {
    assert_eq!(AuditedRepairer.name(), "haft-audited");
}

#[test]
fn the_model_reads_what_is_wrong_and_no_more() {
    let deep = format!("{{\"location\":{}", "[".repeat(200));
    let large = format!("{{\"location\":\"{}\"}}", "x".repeat(1024 * 1024));
    for (text, told) in [
        (
            "{\"location\": oops}",
            "arguments are not valid JSON (line 1, column 14).",
        ),
        (
            "{\"location\": \"Os",
            "the arguments were cut off. Send the call again.",
        ),
        (
            "{\"days\":1,\"days\":2}",
            "key 'days' occurs twice in the arguments.",
        ),
        (deep.as_str(), "arguments are nested deeper than 128."),
        (large.as_str(), "arguments are larger than 1048576 bytes."),
        ("[]", "arguments must be a JSON object."),
        (
            "{\"days\":\"x\"}",
            "invalid arguments: 'days' must be integer, got string; missing field 'location'",
        ),
    ] {
        let expected = format!("Tool 'get_current_weather': {told}");
        assert_eq!(hydrate(text).text_for_model(), Some(expected.clone()));
        assert_eq!(
            repair(text).text_for_model(),
            Some(expected),
            "also after a failed repair"
        );
    }
    assert_eq!(hydrate(r#"{"location":"Oslo"}"#).text_for_model(), None);
}

#[test]
fn a_record_survives_storage() {
    for result in [
        hydrate(r#"{"location":"Oslo"}"#),
        hydrate("broken"),
        repair(r#"{"location": "Oslo", "days": "3",}"#),
    ] {
        let stored = serde_json::to_string(&result.provenance).unwrap();
        let read: Provenance = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, result.provenance);
    }
}

#[test]
fn an_attached_validator_without_a_name_is_not_taken_for_the_factorys() {
    struct Quiet;
    impl Validator for Quiet {
        fn validate(&self, _: &Value) -> Vec<ValidationError> {
            vec![
                ValidationError::new("/z", "k", "bad z"),
                ValidationError::new("/a[10]", "k", "bad a10"),
                ValidationError::new("/a[2]", "k", "bad a2"),
            ]
        }
    }
    let tools = [table([echo(weather())])[0].with_validator(Arc::new(Quiet))];
    let call = ToolCall::new("get_current_weather", "{}");
    let result = Hydrator::new().hydrate(&call, &tools[..], &mut CallIds::default());
    let validator = result.provenance.validator.clone().unwrap();
    assert_eq!(
        (validator.name.as_str(), validator.version),
        ("attached", None)
    );
    assert_eq!(
        messages(&result),
        ["bad a2", "bad a10", "bad z"],
        "sorted, whoever found them"
    );
}

#[test]
fn edits_made_until_a_refusal_are_recorded() {
    let result = repair(r"{'location': 'x', days: NaN}");
    let record = result.provenance.repair.unwrap();
    assert!(!record.ok);
    assert!(record.events.len() >= 4, "{:?}", record.events);
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

#[test]
fn at_most_8_errors_are_told_and_32_kept() {
    let required: Vec<_> = (10..60).map(|n| format!("f{n}")).collect();
    let definition = ToolDefinition::builder("many")
        .parameters(json!({"type": "object", "required": required}))
        .build()
        .unwrap();
    let tools = table([echo(definition)]);
    let result = Hydrator::new().hydrate(
        &ToolCall::new("many", "{}"),
        &tools[..],
        &mut CallIds::default(),
    );
    assert_eq!(result.errors.len(), 32);
    let told = result.text_for_model().unwrap();
    assert_eq!(told.matches("missing field").count(), 8);
    assert!(told.starts_with("Tool 'many': invalid arguments: missing field 'f10'; "));
}

#[test]
fn a_union_is_explained_by_the_branch_that_was_meant() {
    let definition = ToolDefinition::builder("union")
        .parameters(json!({"type": "object", "properties": {
            "x": {"anyOf": [
                {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}, "required": ["m"]},
                {"type": "null"}
            ]},
            "y": {"type": "string", "pattern": "^a"}
        }}))
        .build()
        .unwrap();
    let tools = table([echo(definition)]);
    let call = ToolCall::new("union", r#"{"x": {"n": 1}, "y": "b"}"#);
    let result = Hydrator::new().hydrate(&call, &tools[..], &mut CallIds::default());
    assert_eq!(
        messages(&result),
        [
            "missing field 'x.m'",
            "'x.n' must be at least 3",
            "'y' must match the pattern ^a"
        ]
    );
}

#[test]
fn an_authors_mistake_is_told_apart_from_the_models() {
    let tools = table([Arc::new(Fails(weather())) as Arc<dyn ToolObject>]);
    let call = ToolCall::new("get_current_weather", r#"{"location":"Oslo"}"#);
    let result = Hydrator::new().hydrate(&call, &tools[..], &mut CallIds::default());
    assert_eq!(result.errors[0].stage, Stage::Instantiate);
    assert_eq!(
        messages(&result),
        ["its arguments could not be read at `location`: no such place"]
    );
    assert_eq!(
        result.text_for_model().as_deref(),
        Some("Tool 'get_current_weather' failed: its arguments could not be read.")
    );
}

struct Fails(Arc<ToolDefinition>);

impl ToolObject for Fails {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.0
    }
    fn instantiate(&self, _: &Value) -> Result<Box<dyn HydratedTool>, InstantiateError> {
        Err(InstantiateError {
            path: "location".into(),
            reason: "no such place".into(),
        })
    }
}

//! What hydration costs: beside `serde_json` alone, as ratios within one run.

#![allow(
    missing_docs,
    reason = "criterion's macros write undocumented functions"
)]
#![allow(
    clippy::unwrap_used,
    reason = "a bench that cannot start has nothing to say"
)]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use haft::{
    AuditedRepairer, CallIds, Compile, Contract, FinishReason, Hydrator, JsonSchemaFactory,
    PreparedTool, RawArguments, Root, ToolCall, ToolDefinition, ValidatorCache, ValidatorFactory,
    Value, check_arguments, dynamic_tool, json,
};

const VALID: &str = r#"{"location": "San Francisco, CA", "unit": "celsius", "days": 5, "hourly": true, "stations": ["KSFO", "KOAK"]}"#;

/// One fault each, as models make them.
const BROKEN: [(&str, &str); 6] = [
    (
        "trailing comma",
        r#"{"location": "San Francisco, CA", "unit": "celsius", "days": 5,}"#,
    ),
    (
        "python dict",
        r#"{'location': "San Francisco, CA", 'unit': 'celsius', 'hourly': True}"#,
    ),
    (
        "fence and prose",
        "Here you are:\n```json\n{\"location\": \"San Francisco, CA\", \"days\": 5}\n```\nDone.",
    ),
    (
        "missing closers",
        r#"{"location": "San Francisco, CA", "stations": ["KSFO", "KOAK""#,
    ),
    (
        "stringified",
        r#"{"location": "San Francisco, CA", "days": "5", "hourly": "true"}"#,
    ),
    (
        "wrapper",
        r#"{"name": "get_weather", "arguments": {"location": "San Francisco, CA"}}"#,
    ),
];

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "location": {"type": "string"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 16},
            "hourly": {"type": "boolean"},
            "stations": {"type": "array", "items": {"type": "string"}}
        },
        "required": ["location"],
        "additionalProperties": false
    })
}

fn parse_and_validate(criterion: &mut Criterion) {
    let schema = schema();
    let validator = JsonSchemaFactory.compile(&schema).unwrap();
    let contract = Contract {
        schema: &schema,
        validator: &*validator,
        factory: &JsonSchemaFactory,
        tool: "get_weather",
        root: Root::Object,
    };
    let check = |raw: &RawArguments| {
        check_arguments(raw, FinishReason::Normal, &contract, Some(&AuditedRepairer))
    };
    let valid = RawArguments::from(VALID);

    let mut group = criterion.benchmark_group("valid call");
    group.throughput(Throughput::Bytes(VALID.len() as u64));
    group.bench_function("serde_json alone", |bencher| {
        bencher.iter(|| serde_json::from_str::<Value>(black_box(VALID)).unwrap());
    });
    group.bench_function("parse and validate", |bencher| {
        bencher.iter(|| check(black_box(&valid)));
    });
    group.finish();

    let mut group = criterion.benchmark_group("repaired call");
    for (fault, text) in BROKEN {
        let raw = RawArguments::from(text);
        assert!(check(&raw).is_repaired(), "{fault}");
        group.bench_function(fault, |bencher| bencher.iter(|| check(black_box(&raw))));
    }
    group.finish();
}

fn whole_call(criterion: &mut Criterion) {
    let definition = ToolDefinition::builder("get_weather")
        .parameters(schema())
        .build()
        .unwrap();
    let tool = dynamic_tool(definition, |arguments, _| async move { Ok(arguments) });
    let cache = ValidatorCache::default();
    let tools = [PreparedTool::new(Arc::clone(&tool), &cache, Compile::Early).unwrap()];
    let hydrator = Hydrator::new();
    let call = ToolCall::new("get_weather", VALID).with_id("call_1");
    criterion.bench_function("whole call with provenance", |bencher| {
        bencher.iter(|| hydrator.hydrate(black_box(&call), &tools[..], &mut CallIds::default()));
    });
    criterion.bench_function("compile a validator", |bencher| {
        bencher
            .iter(|| JsonSchemaFactory.compile(black_box(tool.definition().parameters().unwrap())));
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(50).without_plots();
    targets = parse_and_validate, whole_call
}
criterion_main!(benches);

//! Validators, repairers, sinks and tools of other people's making.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use haft_core::{
    CompiledAt, HydratedTool, HydrationResult, InstantiateError, SchemaError, Stage, ToolCall,
    ToolDefinition, ToolObject, ValidationError, Validator, ValidatorFactory,
};
use haft_hydrate::{
    AuditedRepairer, CallIds, Compile, Hydrator, JsonLinesSink, JsonSchemaFactory, PreparedTool,
    RepairRefused, RepairRequest, Repaired, Repairer, ValidatorCache,
};
use serde_json::{Value, json};

use crate::common::*;

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

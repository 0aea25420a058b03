//! Hydrates arbitrary bytes against arbitrary schemas.
//!
//! It must not panic, hang or take more memory than its bound; what it accepts must be valid; what
//! it repairs must be told edit by edit; and what it accepted must be accepted again, untouched.

#![no_main]

mod schema;

use std::sync::{Arc, Once};

use arbitrary::Unstructured;
use haft_core::{
    FinishReason, HydrationResult, ToolCall, ToolDefinition, ToolObject, ValidatorFactory,
    dynamic_tool,
};
use haft_hydrate::{
    CallIds, Compile, Hydrator, JsonSchemaFactory, PreparedTool, ValidatorCache, preview,
};
use libfuzzer_sys::fuzz_target;
use peak_alloc::PeakAlloc;
use serde_json::Value;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Values are larger than their text: an empty list takes three bytes there and about forty here.
const BYTES_PER_INPUT_BYTE: usize = 256;
const BYTES_AT_REST: usize = 8 * 1024 * 1024;

/// libFuzzer's own hook aborts on every panic, also on those of other libraries that hydration
/// catches by design. A panic of haft's own is a defect even where it would be caught.
fn watch_panics() {
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        if panic.location().is_some_and(|place| place.file().contains("haft-")) {
            std::process::abort();
        }
    }));
}

fuzz_target!(|data: &[u8]| {
    static WATCH: Once = Once::new();
    WATCH.call_once(watch_panics);
    let mut bytes = Unstructured::new(data);
    let Ok((schema, finish)) = choices(&mut bytes) else {
        return;
    };
    let text = String::from_utf8_lossy(bytes.take_rest()).into_owned();

    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    check(schema, &text, finish);
    let taken = MEMORY.peak_usage().saturating_sub(before);
    let bound = BYTES_AT_REST + BYTES_PER_INPUT_BYTE * data.len();
    assert!(taken <= bound, "took {taken} bytes for {}", data.len());
});

fn choices(bytes: &mut Unstructured<'_>) -> arbitrary::Result<(Value, FinishReason)> {
    let schema = schema::any(bytes)?;
    let finish = *bytes.choose(&[
        FinishReason::Normal,
        FinishReason::Unknown,
        FinishReason::Length,
        FinishReason::Error,
    ])?;
    Ok((schema, finish))
}

fn check(schema: Value, text: &str, finish: FinishReason) {
    let _ = preview(text);
    let Ok(definition) = ToolDefinition::builder("fuzzed").parameters(schema).build() else {
        return;
    };
    let tool = dynamic_tool(definition, |arguments, _| async move { Ok(arguments) });
    let Some(plain) = hydrate(&tool, Hydrator::new(), text, finish) else {
        return;
    };
    let Some(repaired) = hydrate(&tool, Hydrator::new().with_audited_repair(), text, finish) else {
        return;
    };
    assert!(!plain.success() || !repaired.provenance.repaired, "a valid call was repaired");
    for result in [&plain, &repaired] {
        assert_eq!(result.success(), result.errors.is_empty());
        if let Some(value) = &result.provenance.validated {
            check_accepted(&tool, value, result);
        }
    }
}

fn hydrate(
    tool: &Arc<dyn ToolObject>,
    hydrator: Hydrator,
    text: &str,
    finish: FinishReason,
) -> Option<HydrationResult> {
    let cache = ValidatorCache::default();
    let table = [PreparedTool::new(Arc::clone(tool), &cache, Compile::Early).ok()?];
    let call = ToolCall::new("fuzzed", text).finished(finish);
    Some(hydrator.hydrate(&call, &table[..], &mut CallIds::default()))
}

fn check_accepted(tool: &Arc<dyn ToolObject>, value: &Value, result: &HydrationResult) {
    let schema = tool.definition().parameters().expect("it was given one");
    let validator = JsonSchemaFactory.compile(schema).expect("it compiled before");
    assert!(validator.is_valid(value), "accepted what the schema refuses");
    if let Some(repair) = &result.provenance.repair {
        assert!(!repair.events.is_empty(), "repaired without an edit");
        let admissible = |kind: haft_core::RepairKind| kind.class().admissible_in_arguments();
        assert!(repair.events.iter().all(|event| admissible(event.kind)));
        let edits: Vec<_> = repair
            .events
            .iter()
            .filter(|event| event.offset.is_some())
            .cloned()
            .collect();
        let replayed = haft_hydrate::text::replay(&repair.before, &edits);
        assert!(
            edits.is_empty() || replayed.is_some_and(|text| serde_json::from_str::<Value>(&text).is_ok()),
            "the edits do not lead from the text to JSON"
        );
    }
    let again = hydrate(tool, Hydrator::new(), &value.to_string(), FinishReason::Normal);
    let again = again.expect("it was prepared before");
    assert_eq!(again.provenance.validated.as_ref(), Some(value), "not stable");
}

//! How the tests call the repairer.

use haft_core::{FinishReason, RepairKind};
use haft_hydrate::text::{
    Root, TextPolicy, TextRefusal, TextRepair, is_truncated, repair_text, replay,
};
use serde_json::Value;

pub(crate) fn repair(input: &str) -> Result<TextRepair, TextRefusal> {
    repair_text(
        input,
        FinishReason::Normal,
        TextPolicy::Arguments,
        Root::Object,
    )
}

pub(crate) fn any(input: &str) -> Result<TextRepair, TextRefusal> {
    repair_text(
        input,
        FinishReason::Normal,
        TextPolicy::Arguments,
        Root::Any,
    )
}

#[track_caller]
pub(crate) fn accepts(input: &str, expected: &Value, kinds: &[RepairKind]) {
    let repaired = repair(input).unwrap_or_else(|refusal| panic!("{input}: {refusal}"));
    let value: Value = serde_json::from_str(&repaired.text).expect(&repaired.text);
    assert_eq!(&value, expected, "{input}");
    let mut found: Vec<RepairKind> = repaired.events.iter().map(|event| event.kind).collect();
    found.dedup();
    assert_eq!(found, kinds, "{input}");
    assert_eq!(
        replay(input, &repaired.events).as_deref(),
        Some(&*repaired.text)
    );
}

#[track_caller]
pub(crate) fn value_of(input: &str) -> Value {
    let repaired = repair(input).unwrap_or_else(|refusal| panic!("{input}: {refusal}"));
    serde_json::from_str(&repaired.text).expect(&repaired.text)
}

#[track_caller]
pub(crate) fn refuses(input: &str) -> TextRefusal {
    match repair(input) {
        Ok(repaired) => panic!("{input} became {}", repaired.text),
        Err(refusal) => refusal,
    }
}

#[track_caller]
pub(crate) fn refuses_as(input: &str, expected: RepairKind) {
    match refuses(input) {
        TextRefusal::Inadmissible { kind, .. } => assert_eq!(kind, expected, "{input}"),
        other => panic!("{input}: {other}"),
    }
}

#[track_caller]
pub(crate) fn is_cut(input: &str) {
    assert!(
        matches!(refuses(input), TextRefusal::Truncated { .. }),
        "{input}: {}",
        refuses(input)
    );
    assert!(is_truncated(input), "{input}");
}

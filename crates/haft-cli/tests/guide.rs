//! The guide to runs tells of everything that there is to set, and of the ends.

#![allow(clippy::unwrap_used)]

use haft::{IncompleteReason, LoopOptions};

const GUIDE: &str = include_str!("../../../docs/guide-runs.md");

fn is_told(name: &str) -> bool {
    GUIDE.contains(&format!("`{name}`"))
}

#[test]
fn every_option_of_the_loop_is_in_the_guide() {
    let options = serde_json::to_value(LoopOptions::default()).unwrap();
    let missing: Vec<_> = options
        .as_object()
        .unwrap()
        .keys()
        .filter(|name| !is_told(name))
        .collect();
    assert!(missing.is_empty(), "not in docs/guide-runs.md: {missing:?}");
}

#[test]
fn the_reasons_in_the_guide_are_those_that_runs_give() {
    let from = GUIDE.find("| `incomplete` |").unwrap();
    let to = GUIDE.find("| `failed` |").unwrap();
    let rows = &GUIDE[from..to];
    for reason in [
        IncompleteReason::MaxTurns,
        IncompleteReason::MaxToolCalls,
        IncompleteReason::Budget,
        IncompleteReason::TimeLimit,
        IncompleteReason::LoopDetected,
        IncompleteReason::MaxOutputTokens,
        IncompleteReason::ContentFilter,
    ] {
        let cell = format!("| `{}` |", reason.as_str());
        assert!(rows.contains(&cell), "{reason:?}");
    }
}

#[test]
fn the_manual_shows_the_unit_and_the_container_file_as_they_are() {
    let manual = include_str!("../../../docs/operations.md");
    let unit = include_str!("../../../deploy/haft.service");
    let container = include_str!("../../../deploy/Containerfile");
    assert!(manual.contains(&format!("```ini\n{unit}```\n")));
    assert!(manual.contains(&format!("```dockerfile\n{container}```\n")));
}

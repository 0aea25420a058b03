//! The guide to runs tells of everything that there is to set, and of the ends.

#![allow(clippy::unwrap_used)]

mod support;

use haft::{FailedReason, IncompleteReason, LoopOptions};

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

#[test]
fn every_reason_of_a_failure_is_in_the_guide() {
    for reason in [
        FailedReason::ToolChoiceNotFollowed,
        FailedReason::OutputInvalid,
        FailedReason::RestartLimit,
        FailedReason::Prompt,
    ] {
        let cell = format!("| `{}` |", reason.as_str());
        assert!(GUIDE.contains(&cell), "{reason:?}");
    }
}

/// What stands between three backticks and this word, and the next three.
fn block<'g>(guide: &'g str, word: &str) -> &'g str {
    let (_, rest) = guide.split_once(&format!("```{word}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_prompt_of_the_guide_works_as_it_stands() {
    let guide = include_str!("../../../docs/guide-cli.md");
    let (_, guide) = guide.split_once("## What a model would see").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let toml = block(guide, "toml");
    std::fs::write(folder.path().join("haft.toml"), toml).unwrap();
    std::fs::create_dir(folder.path().join("prompts")).unwrap();
    let markdown = block(guide, "markdown");
    std::fs::write(folder.path().join("prompts/ref.md"), markdown).unwrap();
    let check = support::haft(folder.path(), &["config", "check"]);
    let (code, out, aside) = support::told(check, "");
    assert_eq!(code, Some(0), "{aside}");
    assert!(out.contains("haft/prompt, 3 sections"), "{out}");
}

//! `tool_choice` and what may be called (`dynamic-tools.md` §16).

use std::sync::Arc;

use haft_catalog::{BindError, Binding, Catalog, Progress, Snapshot};
use haft_core::{AllowedMode, AllowedTools, ToolChoice};

use crate::common::*;

fn snapshot() -> Arc<Snapshot> {
    let catalog = Catalog::new();
    let all = ["a", "b", "c"].map(definition);
    catalog.register_all(all).into_result().unwrap();
    catalog.snapshot()
}

fn bound(choice: ToolChoice) -> Binding {
    snapshot().bind().tool_choice(choice).build().unwrap()
}

fn refusal(binding: &Binding, tool: &str) -> String {
    binding.admit(tool).unwrap_err().to_string()
}

#[test]
fn everything_offered_may_be_called_by_default() {
    let binding = bound(ToolChoice::Auto);
    assert_eq!(of(binding.callable()), ["a", "b", "c"]);
    assert_eq!(binding.admit("b").unwrap().definition().name(), &name("b"));
}

#[test]
fn allowed_tools_keeps_everything_visible_and_refuses_the_rest() {
    let binding = bound(ToolChoice::allowed(["c", "a", "c"]));
    assert_eq!(of(binding.visible()), ["a", "b", "c"]);
    assert_eq!(of(binding.callable()), ["a", "c"]);
    assert_eq!(
        refusal(&binding, "b"),
        "Tool 'b' is not allowed in this request. Allowed tools: c, a."
    );
}

#[test]
fn an_empty_allowed_list_is_an_error_and_never_means_everything() {
    let empty = ToolChoice::allowed::<String>([]);
    let refused = snapshot().bind().tool_choice(empty).build();
    assert!(matches!(refused, Err(BindError::NothingAllowed)));
}

#[test]
fn an_allowed_list_with_mode_none_allows_nothing() {
    let choice = ToolChoice::Allowed(AllowedTools {
        mode: AllowedMode::None,
        names: vec!["a".into()],
    });
    let binding = bound(choice.clone());
    assert_eq!(of(binding.callable()), [""; 0]);
    assert!(binding.admit("a").is_err());
    assert_eq!(binding.tool_choice(Progress::ToolRan), Some(choice));
}

#[test]
fn an_unknown_tool_is_answered_with_what_is_offered() {
    let binding = bound(ToolChoice::allowed(["a"]));
    assert_eq!(
        refusal(&binding, "x"),
        "Unknown tool 'x'. Available tools: a, b, c."
    );
    let none = snapshot().bind().without_tools().build().unwrap();
    assert_eq!(
        refusal(&none, "a"),
        "Unknown tool 'a'. No tools are available."
    );
}

#[test]
fn an_unknown_tool_is_answered_with_at_most_20_names() {
    let catalog = Catalog::new();
    let all = (10..40).map(|n| definition(&format!("t{n}")));
    catalog.register_all(all).into_result().unwrap();
    let text = refusal(&catalog.snapshot().bind().build().unwrap(), "x");
    assert!(
        text.starts_with("Unknown tool 'x'. Available tools: t10, t11,"),
        "{text}"
    );
    assert!(text.ends_with(", t28, t29, …."), "{text}");
}

#[test]
fn with_none_no_tool_may_be_called() {
    let binding = bound(ToolChoice::None);
    assert_eq!(binding.visible().len(), 3);
    assert_eq!(binding.callable().count(), 0);
    assert_eq!(
        refusal(&binding, "a"),
        "Tool 'a' is not allowed in this request. No tool may be called."
    );
}

#[test]
fn naming_a_tool_that_is_not_offered_is_an_error() {
    for choice in [
        ToolChoice::Function("d".into()),
        ToolChoice::allowed(["a", "d"]),
    ] {
        let error = snapshot().bind().tool_choice(choice).build().unwrap_err();
        assert!(matches!(&error, BindError::ChoiceNotOffered { name, .. } if name == "d"));
    }
    let error = snapshot()
        .bind()
        .tools(["a"])
        .tool_choice(ToolChoice::Function("b".into()))
        .build()
        .unwrap_err();
    assert!(
        error.to_string().contains("`b`, which is not offered"),
        "{error}"
    );
}

#[test]
fn forced_choices_relax_after_a_tool_ran_and_the_subset_stays() {
    let after = |choice| bound(choice).tool_choice(Progress::ToolRan).unwrap();
    let before = |choice| bound(choice).tool_choice(Progress::NothingRan).unwrap();
    for choice in [ToolChoice::Required, ToolChoice::Function("a".into())] {
        assert_eq!(before(choice.clone()), choice);
        assert_eq!(after(choice), ToolChoice::Auto);
    }
    assert_eq!(after(ToolChoice::None), ToolChoice::None);
    let subset = ToolChoice::Allowed(AllowedTools {
        mode: AllowedMode::Required,
        names: vec!["a".into()],
    });
    assert_eq!(before(subset.clone()), subset);
    assert_eq!(after(subset), ToolChoice::allowed(["a"]));
}

#[test]
fn tool_choice_is_omitted_when_no_tools_are_offered() {
    let choice = |choice| {
        let binding = snapshot().bind().without_tools().tool_choice(choice);
        binding.build().unwrap().tool_choice(Progress::NothingRan)
    };
    assert_eq!(choice(ToolChoice::Auto), None);
    assert_eq!(choice(ToolChoice::Required), None);
}

#[test]
fn appended_tools_obey_the_allowed_subset() {
    let binding = snapshot()
        .bind()
        .tools(["a"])
        .tool_choice(ToolChoice::allowed(["a"]))
        .build()
        .unwrap();
    let appended = binding.with_appended(["b"]).binding;
    assert_eq!(of(appended.visible()), ["a", "b"]);
    assert_eq!(of(appended.callable()), ["a"]);
    assert!(appended.admit("b").is_err());
}

#[test]
fn a_made_up_name_of_any_length_gets_a_short_answer() {
    let text = refusal(&bound(ToolChoice::Auto), &"é".repeat(1_000_000));
    assert!(text.chars().count() < 200);
}

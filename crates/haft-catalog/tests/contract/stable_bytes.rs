//! The same tools render to the same bytes, whatever the order in which they came.

use std::sync::Arc;

use haft_catalog::Catalog;
use haft_core::ViewFormat;
use proptest::prelude::*;

use crate::common::*;
use crate::naming::{catalog_of, identities};

const FORMATS: [ViewFormat; 5] = [
    ViewFormat::Responses,
    ViewFormat::Chat,
    ViewFormat::Ollama,
    ViewFormat::Anthropic,
    ViewFormat::Mcp,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_bindings_tool_section_is_byte_identical_over_shuffled_registration_order(
        (order, shuffled) in identities().prop_flat_map(|order| {
            (Just(order.clone()), Just(order).prop_shuffle())
        })
    ) {
        let render = |order| {
            let binding = catalog_of(order).snapshot().bind().build().unwrap();
            FORMATS.map(|format| binding.render(format))
        };
        prop_assert_eq!(render(&order), render(&shuffled));
    }
}

fn three() -> Catalog {
    let catalog = Catalog::new();
    let all = ["c", "a", "b"].map(definition);
    catalog.register_all(all).into_result().unwrap();
    catalog
}

#[test]
fn a_rendered_list_is_a_compact_array_of_the_offered_tools() {
    let binding = three().snapshot().bind().build().unwrap();
    for format in FORMATS {
        let text = binding.render(format);
        let parsed: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
        let views: Vec<_> = binding
            .tools_for_llm()
            .map(|tool| tool.view(format))
            .collect();
        assert_eq!(parsed, views);
        assert_eq!(*text, *serde_json::to_string(&views).unwrap());
    }
    let empty = Catalog::new().snapshot().bind().build().unwrap();
    assert_eq!(&*empty.render(ViewFormat::Chat), "[]");
}

#[test]
fn each_tool_is_serialised_once_for_all_bindings_and_snapshots() {
    let catalog = three();
    let first = catalog.snapshot().bind().build().unwrap();
    catalog.register(definition("d")).unwrap();
    let second = catalog.snapshot().bind().build().unwrap();
    let pairs = first
        .rendered(ViewFormat::Chat)
        .zip(second.rendered(ViewFormat::Chat));
    for (one, other) in pairs {
        assert!(Arc::ptr_eq(&one, &other));
    }
    let (one, other) = (
        first.render(ViewFormat::Chat),
        first.render(ViewFormat::Chat),
    );
    assert!(Arc::ptr_eq(&one, &other), "and so is the whole list");
}

/// R20
#[test]
fn appending_only_appends_bytes() {
    let catalog = three();
    let binding = catalog.snapshot().bind().tools(["b"]).build().unwrap();
    let appended = binding.with_appended(["c", "b", "a"]);
    assert_eq!(offered(&appended.binding), ["b", "c", "a"]);
    assert_eq!(appended.added, [name("c"), name("a")]);
    assert_eq!(appended.skipped, [name("b")]);
    assert_eq!(
        offered(&binding),
        ["b"],
        "the former binding stays as it was"
    );
    for format in FORMATS {
        let (before, after) = (binding.render(format), appended.binding.render(format));
        let prefix = before.strip_suffix(']').unwrap();
        assert!(after.starts_with(prefix), "{after}");
    }
}

#[test]
fn appending_takes_objects_and_tools_of_a_later_snapshot() {
    let catalog = three();
    let binding = catalog.snapshot().bind().tools(["a"]).build().unwrap();
    catalog.register(definition("later")).unwrap();
    let appended = binding.with_appended(["later"]);
    assert_eq!(appended.rejected.len(), 1);
    let appended = binding.with_appended_from(&catalog.snapshot(), ["later"]);
    assert_eq!(offered(&appended.binding), ["a", "later"]);
    let appended = appended.binding.with_appended([definition("object")]);
    assert_eq!(offered(&appended.binding), ["a", "later", "object"]);
}

#[test]
fn what_cannot_be_appended_is_reported_and_the_rest_is_there() {
    let binding = three().snapshot().bind().without_tools().build().unwrap();
    let references: [haft_core::ToolRef; 3] = ["nope".into(), broken("bad").into(), "a".into()];
    let appended = binding.with_appended(references);
    assert_eq!(offered(&appended.binding), ["a"]);
    assert_eq!(appended.rejected.len(), 2);
}

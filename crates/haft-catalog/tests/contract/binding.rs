//! `with_tools`, `without_tools` and the order of a binding (`dynamic-tools.md` §16).

use std::sync::Arc;

use haft_catalog::{BindError, Catalog, Snapshot};
use haft_core::{ToolRef, ToolSource};

use crate::common::*;

/// Native `a`, `b`; `calc` with `add`, `sub`; the server `web` with `z`, `y`.
fn snapshot() -> Arc<Snapshot> {
    let catalog = Catalog::new();
    catalog
        .register_all(["b", "a"].map(definition))
        .into_result()
        .unwrap();
    for tool in ["sub", "add"] {
        catalog
            .register_in(&namespace("calc"), definition(tool))
            .unwrap();
    }
    catalog.set_group(&namespace("web"), ["z", "y"].map(definition));
    catalog.snapshot()
}

#[test]
fn the_whole_catalogue_is_offered_in_catalogue_order_if_nothing_is_said() {
    let binding = snapshot().bind().build().unwrap();
    assert_eq!(
        offered(&binding),
        ["a", "b", "calc__add", "calc__sub", "web__z", "web__y"]
    );
}

#[test]
fn listed_tools_stand_in_listed_order() {
    let binding = snapshot()
        .bind()
        .tools(["web__y", "a"])
        .tools(["b"])
        .build()
        .unwrap();
    assert_eq!(offered(&binding), ["web__y", "a", "b"]);
}

#[test]
fn an_empty_list_offers_nothing() {
    let binding = snapshot().bind().tools::<ToolRef>([]).build().unwrap();
    assert!(binding.is_empty());
}

#[test]
fn with_tools_adds_to_the_static_tools() {
    let binding = snapshot()
        .bind()
        .tools(["b"])
        .with_tools(["calc"])
        .build()
        .unwrap();
    assert_eq!(offered(&binding), ["b", "calc__add", "calc__sub"]);
}

#[test]
fn without_tools_leaves_the_static_tools_out() {
    assert!(
        snapshot()
            .bind()
            .without_tools()
            .build()
            .unwrap()
            .is_empty()
    );
    assert!(
        snapshot()
            .bind()
            .tools(["a"])
            .without_tools()
            .build()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn with_and_without_compose_in_any_order() {
    let one = snapshot()
        .bind()
        .without_tools()
        .with_tools(["web"])
        .build()
        .unwrap();
    let other = snapshot()
        .bind()
        .with_tools(["web"])
        .without_tools()
        .build()
        .unwrap();
    assert_eq!(offered(&one), ["web__z", "web__y"]);
    assert_eq!(offered(&one), offered(&other));
}

#[test]
fn repeated_with_tools_extends_in_call_order() {
    let binding = snapshot()
        .bind()
        .without_tools()
        .with_tools(["web__y"])
        .with_tools(["a"])
        .with_tools(["web"])
        .build()
        .unwrap();
    assert_eq!(offered(&binding), ["web__y", "a", "web__z"]);
}

#[test]
fn a_tool_in_both_sets_is_offered_once_and_the_first_wins() {
    let binding = snapshot()
        .bind()
        .tools(["a"])
        .with_tools([described("a", "another one")])
        .build()
        .unwrap();
    assert_eq!(offered(&binding), ["a"]);
    assert_eq!(binding.admit("a").unwrap().definition().brief(), "Does a.");
}

#[test]
fn every_kind_of_reference_is_accepted() {
    let references: Vec<ToolRef> = vec![
        "a".into(),
        String::from("calc__sub").into(),
        name("b").into(),
        namespace("web").into(),
        ToolSource::from(definition("source")).into(),
        answering("object", "x").into(),
        definition("function").into(),
    ];
    let binding = snapshot().bind().tools(references).build().unwrap();
    assert_eq!(
        offered(&binding),
        [
            "a",
            "calc__sub",
            "b",
            "web__z",
            "web__y",
            "source",
            "object",
            "function"
        ]
    );
}

#[test]
fn typed_tools_are_registered_and_bound_by_their_type() {
    let catalog = Catalog::new();
    catalog.register(Typed).unwrap();
    assert_eq!(names(&catalog.snapshot()), ["typed"]);
    let binding = snapshot().bind().tools(["a"]).with_tools([Typed]);
    assert_eq!(offered(&binding.build().unwrap()), ["a", "typed"]);
    let binding = snapshot().bind().tools(haft_core::tools![Typed]);
    assert_eq!(offered(&binding.build().unwrap()), ["typed"]);
}

#[test]
fn a_text_means_a_tool_first_and_a_namespace_second() {
    let catalog = Catalog::new();
    catalog.register(definition("calc")).unwrap();
    catalog
        .register_in(&namespace("calc"), definition("add"))
        .unwrap();
    let snapshot = catalog.snapshot();
    let by_text = snapshot.bind().tools(["calc"]).build().unwrap();
    assert_eq!(offered(&by_text), ["calc"]);
    let by_namespace = snapshot.bind().tools([namespace("calc")]).build().unwrap();
    assert_eq!(offered(&by_namespace), ["calc__add"]);
}

#[test]
fn an_unknown_reference_is_an_error_that_names_it_and_what_is_near() {
    let error = snapshot()
        .bind()
        .with_tools(["calc_add"])
        .build()
        .unwrap_err();
    assert_eq!(
        error,
        BindError::UnknownTool {
            name: "calc_add".into(),
            near: vec!["calc__add".into()]
        }
    );
    assert_eq!(
        error.to_string(),
        "there is no tool or namespace `calc_add`: did you mean `calc__add`?"
    );
    let error = snapshot()
        .bind()
        .tools([namespace("webb")])
        .build()
        .unwrap_err();
    assert!(error.to_string().contains("`web`"), "{error}");
}

#[test]
fn a_given_tool_that_is_broken_is_an_error_that_names_it() {
    let error = snapshot()
        .bind()
        .with_tools([broken("bad")])
        .build()
        .unwrap_err();
    assert!(matches!(&error, BindError::InvalidSchema { tool, .. } if tool.as_str() == "bad"));
    let error = snapshot()
        .bind()
        .with_tools([no_tool()])
        .build()
        .unwrap_err();
    assert!(matches!(error, BindError::Definition(_)));
}

#[test]
fn given_tools_are_prepared_with_the_snapshots_validator_cache() {
    let factory = Arc::new(Counting::default());
    let catalog = Catalog::builder()
        .validator_factory(factory.clone())
        .build();
    let tool = definition("given");
    let bind = || {
        catalog
            .snapshot()
            .bind()
            .with_tools([tool.clone()])
            .build()
            .unwrap()
    };
    let (one, other) = (bind(), bind());
    for binding in [&one, &other] {
        binding
            .admit("given")
            .unwrap()
            .validator()
            .unwrap()
            .unwrap();
    }
    assert_eq!(factory.compiled(), 1);
}

#[test]
fn a_requests_function_sends_a_servers_tool_to_its_hashed_name() {
    let hashed = haft_core::ToolName::in_namespace_hashed(&namespace("web"), "z");
    let function = described("web__z", "the client's own");
    let binding = snapshot()
        .bind()
        .tools(["web"])
        .with_tools([function])
        .build()
        .unwrap();
    assert_eq!(offered(&binding), [hashed.as_str(), "web__y", "web__z"]);
    let own = binding.admit("web__z").unwrap().definition().brief();
    assert_eq!(own, "the client's own");
}

#[test]
fn a_catalogue_tool_given_as_an_object_is_the_same_tool() {
    let snapshot = snapshot();
    let object = snapshot.get("web__z").unwrap().tool().clone();
    let binding = snapshot
        .bind()
        .tools(["web"])
        .with_tools([object])
        .build()
        .unwrap();
    assert_eq!(offered(&binding), ["web__z", "web__y"]);
}

#[test]
fn a_clients_function_may_have_a_reserved_name() {
    let binding = snapshot()
        .bind()
        .with_tools([definition("search_tools")])
        .build()
        .unwrap();
    assert!(binding.admit("search_tools").is_ok());
}

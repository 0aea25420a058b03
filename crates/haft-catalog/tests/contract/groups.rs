//! MCP servers: groups in configured order, their tools in server order.

use std::sync::Arc;

use haft_catalog::Catalog;
use haft_core::ToolSource;

use crate::common::*;

#[test]
fn servers_stand_in_configured_order_and_their_tools_in_server_order() {
    let build = |connected: [&str; 3]| {
        let catalog = Catalog::builder()
            .groups([namespace("zeta"), namespace("alpha")])
            .build();
        for label in connected {
            catalog.set_group(&namespace(label), [definition("b"), definition("a")]);
        }
        catalog.register(definition("native")).unwrap();
        catalog
            .register_in(&namespace("zz"), definition("x"))
            .unwrap();
        catalog.snapshot()
    };
    let expected = [
        "native", "zz__x", "zeta__b", "zeta__a", "alpha__b", "alpha__a", "beta__b", "beta__a",
    ];
    assert_eq!(names(&build(["alpha", "beta", "zeta"])), expected);
    assert_eq!(names(&build(["zeta", "alpha", "beta"])), expected);
}

#[test]
fn the_configured_order_can_be_set_later() {
    let catalog = Catalog::new();
    for label in ["a", "b"] {
        catalog.set_group(&namespace(label), [definition("x")]);
    }
    assert_eq!(names(&catalog.snapshot()), ["a__x", "b__x"]);
    catalog.set_group_order([namespace("b"), namespace("a"), namespace("b")]);
    assert_eq!(names(&catalog.snapshot()), ["b__x", "a__x"]);
}

#[test]
fn a_new_list_replaces_the_old_one_at_once() {
    let catalog = Catalog::new();
    let server = namespace("srv");
    catalog.set_group(&server, [definition("a"), definition("b")]);
    let before = catalog.snapshot();
    catalog.set_group(&server, [definition("c"), definition("b")]);
    assert_eq!(names(&catalog.snapshot()), ["srv__c", "srv__b"]);
    assert_eq!(names(&before), ["srv__a", "srv__b"]);
    assert!(catalog.remove_group(&server));
    assert!(!catalog.remove_group(&server));
    assert!(catalog.is_empty());
}

#[test]
fn bad_tools_of_a_server_are_dropped_with_a_diagnostic() {
    let catalog = Catalog::new();
    let server = namespace("srv");
    let dropped = catalog.set_group(
        &server,
        [
            ToolSource::from(definition("good")),
            no_tool(),
            broken("bad").into(),
            definition("good").into(),
        ],
    );
    assert_eq!(names(&catalog.snapshot()), ["srv__good"]);
    let tools: Vec<_> = dropped.iter().map(|d| d.tool.as_str()).collect();
    assert_eq!(tools, ["srv[1]", "bad", "good"]);
    assert_eq!(catalog.diagnostics(), dropped);
    catalog.set_group(&server, [definition("good")]);
    assert!(catalog.diagnostics().is_empty(), "a good list clears them");
}

#[test]
fn foreign_names_become_legal_and_stay_apart() {
    let catalog = Catalog::new();
    catalog.set_group(
        &namespace("srv"),
        [
            foreign("read.all"),
            foreign("read/all"),
            foreign("read_all"),
        ],
    );
    let snapshot = catalog.snapshot();
    assert_eq!(snapshot.len(), 3);
    assert_eq!(names(&snapshot)[2], "srv__read_all");
    let dotted = snapshot.find(&namespace("srv"), "read.all").unwrap();
    assert!(
        dotted
            .definition()
            .name()
            .as_str()
            .starts_with("srv__read_all_")
    );
    assert_eq!(
        dotted.definition().annotations().origin.as_deref(),
        Some("read.all")
    );
}

#[test]
fn a_native_name_sends_the_servers_tool_to_its_hashed_name() {
    let catalog = Catalog::new();
    let server = namespace("srv");
    catalog.set_group(&server, [definition("a"), definition("b")]);
    catalog.register(definition("srv__a")).unwrap();
    let snapshot = catalog.snapshot();
    let hashed = haft_core::ToolName::in_namespace_hashed(&server, "a");
    assert_eq!(names(&snapshot), ["srv__a", hashed.as_str(), "srv__b"]);
    catalog.remove("srv__a");
    assert_eq!(names(&catalog.snapshot()), ["srv__a", "srv__b"]);
}

#[test]
fn a_residual_clash_drops_the_later_tool_by_name_with_a_diagnostic() {
    let server = namespace("srv");
    let hashed = haft_core::ToolName::in_namespace_hashed(&server, "a.b");
    let raw = hashed.as_str().strip_prefix("srv__").unwrap();
    for tools in [
        [foreign("a.b"), foreign(raw)],
        [foreign(raw), foreign("a.b")],
    ] {
        let catalog = Catalog::new();
        catalog.set_group(&server, tools);
        let snapshot = catalog.snapshot();
        assert_eq!(names(&snapshot), [hashed.as_str()]);
        assert_eq!(snapshot.identity(hashed.as_str()).unwrap().1, "a.b");
        assert_eq!(catalog.diagnostics()[0].tool, raw);
    }
}

#[test]
fn a_server_that_has_not_answered_is_known_and_empty() {
    let catalog = Catalog::builder().groups([namespace("srv")]).build();
    let binding = catalog.snapshot().bind().tools(["srv"]).build().unwrap();
    assert!(binding.is_empty());
    assert_eq!(catalog.namespaces(), [namespace("srv")]);
}

#[test]
fn an_attached_validator_survives_the_servers_next_list() {
    let catalog = Catalog::new();
    let server = namespace("srv");
    catalog.set_group(&server, [definition("a"), definition("b")]);
    catalog
        .attach_validator("srv__a", Arc::new(Nothing))
        .unwrap();
    catalog.set_group(&server, [definition("b"), described("a", "changed")]);
    let validator = |name: &str| catalog.get(name).unwrap().validator().unwrap().unwrap();
    assert_eq!(validator("srv__a").name(), Some("nothing"));
    assert_eq!(validator("srv__b").name(), None);
}

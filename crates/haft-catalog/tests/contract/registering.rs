//! Into the catalogue and out of it.

use std::panic::Location;
use std::sync::Arc;

use haft_catalog::{AttachError, Catalog, Origin, RegisterError, Registration};
use haft_core::{RESERVED_NAMES, ToolDefinition};
use haft_hydrate::Compile;
use serde_json::json;

use crate::common::*;

#[test]
fn register_returns_the_wire_name() {
    let catalog = Catalog::new();
    assert_eq!(catalog.register(definition("ping")).unwrap(), name("ping"));
    let files = namespace("files");
    let wire = catalog.register_in(&files, definition("read")).unwrap();
    assert_eq!(wire, name("files__read"));
}

#[test]
fn a_registered_tool_is_found_listed_and_counted() {
    let catalog = Catalog::new();
    assert!(catalog.is_empty());
    catalog.register(definition("ping")).unwrap();
    catalog
        .register_in(&namespace("files"), definition("read"))
        .unwrap();
    assert_eq!(catalog.len(), 2);
    let listed = catalog.list();
    assert_eq!(listed[1].name(), &name("files__read"));
    assert!(catalog.get("ping").is_some());
    assert!(catalog.get("read").is_none());
    assert_eq!(catalog.namespaces(), [namespace("files")]);
    let snapshot = catalog.snapshot();
    assert_eq!(
        snapshot.identity("files__read"),
        Some((Some(&namespace("files")), "read"))
    );
    assert!(snapshot.find(&namespace("files"), "read").is_some());
    assert!(snapshot.find(&namespace("files"), "write").is_none());
}

#[test]
fn the_definition_of_a_namespaced_tool_bears_its_wire_name_everywhere() {
    let catalog = Catalog::new();
    catalog
        .register_in(&namespace("files"), answering("read", "content"))
        .unwrap();
    let tool = catalog.get("files__read").unwrap();
    assert_eq!(
        tool.definition().annotations().origin.as_deref(),
        Some("read")
    );
    let call = tool.tool().instantiate(&json!({})).unwrap();
    assert_eq!(call.definition().name(), &name("files__read"));
    assert!(Arc::ptr_eq(tool.definition(), tool.tool().definition()));
}

#[tokio::test]
async fn a_namespaced_tool_runs_what_was_registered() {
    let catalog = Catalog::new();
    catalog
        .register_in(&namespace("files"), answering("read", "content"))
        .unwrap();
    let tool = catalog.get("files__read").unwrap();
    let call = tool.tool().instantiate(&json!({})).unwrap();
    let output = call.run(&haft_core::ToolContext::default()).await.unwrap();
    assert_eq!(output.text_for_model(), "content");
}

#[test]
fn a_definition_is_the_same_object_in_every_snapshot() {
    let catalog = Catalog::new();
    catalog
        .register_in(&namespace("files"), definition("read"))
        .unwrap();
    let before = catalog.get("files__read").unwrap();
    catalog.register(definition("ping")).unwrap();
    let after = catalog.get("files__read").unwrap();
    assert!(Arc::ptr_eq(before.definition(), after.definition()));
}

#[test]
fn reserved_names_are_refused_outside_a_namespace() {
    let catalog = Catalog::new();
    for reserved in RESERVED_NAMES {
        let error = catalog.register(definition(reserved)).unwrap_err();
        assert!(
            matches!(error, RegisterError::ReservedName { .. }),
            "{error}"
        );
        assert!(error.to_string().contains(reserved), "{error}");
        catalog
            .register_in(&namespace("mine"), definition(reserved))
            .unwrap();
    }
    assert_eq!(catalog.len(), RESERVED_NAMES.len());
}

/// R21
#[test]
fn a_duplicate_names_both_origins_and_changes_nothing() {
    let catalog = Catalog::new();
    catalog.register(described("ping", "first")).unwrap();
    let first_line = Location::caller().line() - 1;
    let before = catalog.snapshot();
    let error = catalog.register(described("ping", "second")).unwrap_err();
    let second_line = Location::caller().line() - 1;
    let RegisterError::DuplicateTool {
        name,
        first,
        second,
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(name.as_str(), "ping");
    assert!(
        first
            .as_str()
            .contains(&format!("registering.rs:{first_line}")),
        "{first}"
    );
    assert!(
        second
            .as_str()
            .contains(&format!("registering.rs:{second_line}")),
        "{second}"
    );
    let text = error.to_string();
    assert!(
        text.contains(first.as_str()) && text.contains(second.as_str()),
        "{text}"
    );
    assert!(Arc::ptr_eq(&before, &catalog.snapshot()), "nothing changed");
    assert_eq!(catalog.get("ping").unwrap().definition().brief(), "first");
}

#[test]
fn an_origin_can_be_given_and_shows_the_namespace() {
    let catalog = Catalog::new();
    let registration = || {
        Registration::new(definition("read"))
            .in_namespace(namespace("files"))
            .from_origin("haft.toml, line 12")
    };
    catalog.add(registration()).unwrap();
    let error = catalog.add(registration()).unwrap_err();
    let RegisterError::DuplicateTool { first, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(
        first,
        Origin::from("haft.toml, line 12 (namespace `files`)")
    );
}

#[test]
fn the_same_name_lives_in_two_namespaces() {
    let catalog = Catalog::new();
    for space in ["a", "b"] {
        catalog
            .register_in(&namespace(space), definition("read"))
            .unwrap();
    }
    catalog.register(definition("read")).unwrap();
    assert_eq!(names(&catalog.snapshot()), ["read", "a__read", "b__read"]);
}

#[test]
fn an_early_catalogue_refuses_a_broken_schema() {
    let catalog = Catalog::new();
    let error = catalog.register(broken("bad")).unwrap_err();
    assert!(
        matches!(&error, RegisterError::InvalidSchema { tool, .. } if tool == "bad"),
        "{error}"
    );
    assert!(catalog.is_empty());
    assert_eq!(catalog.snapshot().version(), 0);
}

#[test]
fn a_late_catalogue_takes_it() {
    let catalog = Catalog::builder().compile(Compile::Late).build();
    catalog.register(broken("bad")).unwrap();
    assert_eq!(catalog.len(), 1);
}

#[test]
fn early_compiles_at_registration_and_late_does_not() {
    for (compile, compiled) in [(Compile::Early, 1), (Compile::Late, 0)] {
        let factory = Arc::new(Counting::default());
        let catalog = Catalog::builder()
            .validator_factory(factory.clone())
            .compile(compile)
            .build();
        catalog.register(definition("ping")).unwrap();
        catalog.snapshot();
        assert_eq!(factory.compiled(), compiled, "{compile:?}");
    }
}

#[test]
fn one_bad_tool_never_spoils_the_rest() {
    let catalog = Catalog::new();
    let report = catalog.register_all([
        definition("a").into(),
        no_tool(),
        broken("b").into(),
        definition("pick_tools").into(),
        definition("a").into(),
        definition("c").into(),
    ]);
    assert_eq!(report.registered, [name("a"), name("c")]);
    let positions: Vec<_> = report.rejected.iter().map(|r| r.position).collect();
    assert_eq!(positions, [1, 2, 3, 4]);
    assert!(matches!(
        report.rejected[0].error,
        RegisterError::Definition(_)
    ));
    assert!(matches!(
        report.rejected[1].error,
        RegisterError::InvalidSchema { .. }
    ));
    assert!(matches!(
        report.rejected[2].error,
        RegisterError::ReservedName { .. }
    ));
    assert!(matches!(
        report.rejected[3].error,
        RegisterError::DuplicateTool { .. }
    ));
    let text = report.into_result().unwrap_err().to_string();
    assert!(text.contains("4 of the tools"), "{text}");
    assert_eq!(names(&catalog.snapshot()), ["a", "c"]);
}

#[test]
fn a_good_list_is_a_good_result() {
    let catalog = Catalog::new();
    let report = catalog.register_all([definition("b"), definition("a")]);
    assert_eq!(report.into_result().unwrap(), [name("b"), name("a")]);
    assert_eq!(catalog.snapshot().version(), 1, "one step");
}

#[test]
fn a_tool_that_panics_when_asked_is_refused_like_any_other() {
    struct Panicking(Arc<ToolDefinition>);
    impl haft_core::ToolObject for Panicking {
        fn definition(&self) -> &Arc<ToolDefinition> {
            &self.0
        }
        fn instantiate(
            &self,
            _: &serde_json::Value,
        ) -> Result<Box<dyn haft_core::HydratedTool>, haft_core::InstantiateError> {
            panic!("never asked")
        }
        fn validator(&self) -> Option<Arc<dyn haft_core::Validator>> {
            panic!("no validator here")
        }
    }
    let catalog = Catalog::new();
    let bad: Arc<dyn haft_core::ToolObject> = Arc::new(Panicking(definition("bad")));
    let error = catalog.register(bad).unwrap_err();
    assert!(error.to_string().contains("no validator here"), "{error}");
    catalog.register(definition("good")).unwrap();
}

#[test]
fn replace_exchanges_a_tool_and_keeps_its_name() {
    let catalog = Catalog::new();
    let files = namespace("files");
    catalog.register(described("ping", "old")).unwrap();
    catalog
        .register_in(&files, described("read", "old"))
        .unwrap();
    let before = catalog.snapshot();
    assert_eq!(
        catalog.replace(described("ping", "new")).unwrap(),
        name("ping")
    );
    let replaced = catalog
        .replace_in(&files, described("read", "new"))
        .unwrap();
    assert_eq!(replaced, name("files__read"));
    for tool in ["ping", "files__read"] {
        assert_eq!(catalog.get(tool).unwrap().definition().brief(), "new");
        assert_eq!(before.get(tool).unwrap().definition().brief(), "old");
    }
}

#[test]
fn replace_needs_something_to_replace() {
    let catalog = Catalog::new();
    let error = catalog.replace(definition("ping")).unwrap_err();
    assert!(
        matches!(error, RegisterError::NothingToReplace { .. }),
        "{error}"
    );
    catalog.register(definition("ping")).unwrap();
    assert!(catalog.replace(broken("ping")).is_err());
    assert!(
        catalog.get("ping").is_some(),
        "a failed replacement changes nothing"
    );
}

#[test]
fn a_removed_tool_is_gone_from_the_next_snapshot_only() {
    let catalog = Catalog::new();
    catalog.register(definition("ping")).unwrap();
    let before = catalog.snapshot();
    assert!(catalog.remove("ping").is_some());
    assert!(catalog.remove("ping").is_none());
    assert!(before.get("ping").is_some());
    assert!(catalog.get("ping").is_none());
    catalog.register(definition("ping")).unwrap();
}

#[test]
fn a_snapshot_costs_a_pointer_while_nothing_changes_and_its_version_grows_with_each_change() {
    let catalog = Catalog::new();
    let mut versions = vec![catalog.snapshot().version()];
    assert!(Arc::ptr_eq(&catalog.snapshot(), &catalog.snapshot()));
    catalog.register(definition("a")).unwrap();
    versions.push(catalog.snapshot().version());
    catalog.replace(definition("a")).unwrap();
    versions.push(catalog.snapshot().version());
    catalog.attach_validator("a", Arc::new(Nothing)).unwrap();
    versions.push(catalog.snapshot().version());
    catalog.set_group(&namespace("srv"), [definition("x")]);
    versions.push(catalog.snapshot().version());
    catalog.remove_group(&namespace("srv"));
    versions.push(catalog.snapshot().version());
    catalog.remove("a");
    versions.push(catalog.snapshot().version());
    assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
}

#[test]
fn clones_share_one_catalogue() {
    let catalog = Catalog::new();
    catalog.clone().register(definition("ping")).unwrap();
    assert!(catalog.get("ping").is_some());
    assert!(format!("{catalog:?}").contains("ping"));
}

#[test]
fn a_validator_is_attached_only_to_a_tool_that_asks_it() {
    let catalog = Catalog::new();
    catalog.register(definition("get_weather")).unwrap();
    let error = catalog
        .attach_validator("get_wether", Arc::new(Nothing))
        .unwrap_err();
    assert!(
        error.to_string().contains("did you mean `get_weather`?"),
        "{error}"
    );
    let free = ToolDefinition::builder("free")
        .no_schema(haft_core::NoSchemaMode::HumanApproval)
        .build()
        .unwrap();
    catalog.register(free).unwrap();
    let error = catalog
        .attach_validator("free", Arc::new(Nothing))
        .unwrap_err();
    assert_eq!(error, AttachError::NoSchema { name: name("free") });
}

#[test]
fn a_list_registered_in_a_namespace_bears_it_and_one_bad_tool_spoils_nothing() {
    let catalog = Catalog::new();
    let files = namespace("files");
    let tools = [definition("read"), broken("bad"), definition("write")];
    let report = catalog.register_all_in(&files, tools);
    let line = Location::caller().line() - 1;
    assert_eq!(
        report.registered,
        [name("files__read"), name("files__write")]
    );
    assert_eq!(report.rejected.len(), 1);
    assert_eq!(report.rejected[0].position, 1);
    assert_eq!(names(&catalog.snapshot()), ["files__read", "files__write"]);

    let again = catalog.register_all_in(&files, [definition("read")]);
    let RegisterError::DuplicateTool { first, .. } = &again.rejected[0].error else {
        panic!("{again:?}");
    };
    let first = first.to_string();
    assert!(first.contains(&format!("registering.rs:{line}")), "{first}");
}

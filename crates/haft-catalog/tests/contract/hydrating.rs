//! A binding is the table by which its calls are hydrated.

use std::sync::Arc;

use haft_catalog::Catalog;
use haft_core::{CompiledAt, HydrationResult, ToolCall, ToolChoice, ToolContext};
use haft_hydrate::{CallIds, Compile, Hydrator, ToolTable};

use crate::common::*;

fn hydrate(table: &impl ToolTable, tool: &str) -> HydrationResult {
    Hydrator::new().hydrate(
        &ToolCall::new(tool, r#"{"n": 1}"#),
        table,
        &mut CallIds::default(),
    )
}

#[tokio::test]
async fn t11_calls_are_hydrated_by_the_table_of_the_request_that_was_sent() {
    let catalog = Catalog::new();
    catalog.register(answering("ping", "old")).unwrap();
    let sent = catalog.snapshot().bind().build().unwrap();
    catalog.replace(answering("ping", "new")).unwrap();
    let replaced = catalog.snapshot().bind().build().unwrap();
    catalog.remove("ping");
    let removed = catalog.snapshot().bind().build().unwrap();

    for (binding, expected) in [(&sent, "old"), (&replaced, "new")] {
        let tool = hydrate(binding, "ping").tool.unwrap();
        let output = tool.run(&ToolContext::default()).await.unwrap();
        assert_eq!(output.text_for_model(), expected);
    }
    let unknown = hydrate(&removed, "ping");
    assert_eq!(unknown.errors[0].message, "unknown tool 'ping'");
}

#[test]
fn t12_64_concurrent_hydrations_compile_a_lazy_validator_once() {
    let factory = Arc::new(Counting::default());
    let catalog = Catalog::builder()
        .validator_factory(factory.clone())
        .compile(Compile::Late)
        .build();
    catalog.register(definition("ping")).unwrap();
    let binding = catalog.snapshot().bind().build().unwrap();
    assert_eq!(factory.compiled(), 0);
    let barrier = std::sync::Barrier::new(64);
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                // A snapshot of its own for each: they share what is compiled.
                let own = catalog.snapshot().bind().build().unwrap();
                barrier.wait();
                assert!(hydrate(&own, "ping").success());
                let record = hydrate(&binding, "ping").provenance.validator.unwrap();
                assert_eq!(record.compiled_at, CompiledAt::Hydration);
            });
        }
    });
    assert_eq!(factory.compiled(), 1);
}

#[test]
fn t14_an_attached_validator_goes_before_the_factorys_and_is_named() {
    let catalog = Catalog::new();
    catalog.register(definition("ping")).unwrap();
    catalog
        .register_in(&namespace("files"), definition("read"))
        .unwrap();
    let before = catalog.snapshot();
    for tool in ["ping", "files__read"] {
        catalog.attach_validator(tool, Arc::new(Nothing)).unwrap();
        let result = hydrate(&*catalog.snapshot(), tool);
        assert_eq!(result.errors[0].message, "nothing fits");
        assert_eq!(result.provenance.validator.unwrap().name, "nothing");
        let former = hydrate(&*before, tool);
        assert!(former.success(), "an earlier snapshot never changes");
        assert_eq!(former.provenance.validator.unwrap().name, "haft-jsonschema");
    }
}

#[test]
fn t14_it_holds_for_a_displaced_tool_and_for_the_same_tool_given_as_an_object() {
    let catalog = Catalog::new();
    let ping = definition("ping");
    catalog.register(ping.clone()).unwrap();
    let files = namespace("files");
    catalog.register_in(&files, definition("read")).unwrap();
    for tool in ["ping", "files__read"] {
        catalog.attach_validator(tool, Arc::new(Nothing)).unwrap();
    }
    catalog.register(definition("files__read")).unwrap();
    let snapshot = catalog.snapshot();
    let displaced = snapshot.find(&files, "read").unwrap().definition().name();
    assert!(!hydrate(&*snapshot, displaced.as_str()).success());
    assert!(hydrate(&*snapshot, "files__read").success());

    let binding = snapshot
        .bind()
        .without_tools()
        .with_tools([ping])
        .build()
        .unwrap();
    assert!(!hydrate(&binding, "ping").success());
}

#[test]
fn a_broken_schema_of_a_late_catalogue_is_an_error_of_that_call_only() {
    let catalog = Catalog::builder().compile(Compile::Late).build();
    let tools = [broken("bad"), definition("good")];
    catalog.register_all(tools).into_result().unwrap();
    let binding = catalog.snapshot().bind().build().unwrap();
    assert!(!hydrate(&binding, "bad").success());
    assert!(hydrate(&binding, "good").success());
}

#[test]
fn the_provenance_of_a_namespaced_tool_has_its_wire_name_and_fingerprint() {
    let catalog = Catalog::new();
    catalog
        .register_in(&namespace("files"), definition("read"))
        .unwrap();
    let binding = catalog.snapshot().bind().build().unwrap();
    let provenance = hydrate(&binding, "files__read").provenance;
    assert_eq!(provenance.tool_name.as_deref(), Some("files__read"));
    let offered = binding.tools_for_llm().next().unwrap();
    assert_eq!(
        provenance.definition_fingerprint.as_ref(),
        Some(offered.fingerprint())
    );
}

#[test]
fn a_call_outside_the_allowed_tools_never_becomes_a_tool() {
    let catalog = Catalog::new();
    let all = ["a", "b"].map(definition);
    catalog.register_all(all).into_result().unwrap();
    for (choice, told) in [
        (
            ToolChoice::allowed(["a"]),
            "Tool 'b' is not allowed in this request. Allowed tools: a.",
        ),
        (
            ToolChoice::None,
            "Tool 'b' is not allowed in this request. No tool may be called.",
        ),
    ] {
        let binding = catalog
            .snapshot()
            .bind()
            .tool_choice(choice)
            .build()
            .unwrap();
        let result = hydrate(&binding, "b");
        assert!(result.tool.is_none());
        assert_eq!(result.text_for_model().as_deref(), Some(told));
        assert_eq!(
            result.provenance.tool_name.as_deref(),
            Some("b"),
            "the record knows it"
        );
        assert_eq!(result.provenance.validated, None);
    }
    let binding = catalog.snapshot().bind().build().unwrap();
    assert_eq!(
        hydrate(&binding, "c").text_for_model().as_deref(),
        Some("Unknown tool 'c'. Available tools: a, b.")
    );
}

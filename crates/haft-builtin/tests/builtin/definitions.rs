use haft_builtin::{RegisterBuiltin, Workspace};
use haft_catalog::Catalog;
use haft_core::{ToolKind, TrustPolicy};
use serde_json::json;

fn names(workspace: Workspace) -> Vec<String> {
    let report = Catalog::new().register_all_builtin(workspace);
    let names = report.into_result().unwrap();
    names.iter().map(ToString::to_string).collect()
}

/// R39
#[test]
fn a_shell_is_offered_only_where_it_was_switched_on() {
    let files = ["list_files", "read_file", "write_file", "edit_file"];
    assert_eq!(names(Workspace::new(".")), files);
    let with_shell = names(Workspace::new(".").allow_shell());
    assert_eq!(with_shell, [&files[..], &["bash"]].concat());
}

#[test]
fn the_annotations_tell_readers_from_writers_and_the_shell_asks() {
    let tools: Vec<_> = Workspace::new(".")
        .allow_shell()
        .tools()
        .into_iter()
        .map(|tool| tool.into_object().unwrap())
        .collect();
    for (tool, reads) in tools.iter().zip([true, true, false, false, false]) {
        let annotations = tool.definition().annotations();
        assert_eq!(
            (annotations.read_only, annotations.destructive),
            (reads, !reads)
        );
        assert_eq!(*tool.definition().kind(), ToolKind::Internal);
    }
    let bash = tools[4].definition();
    assert_eq!(bash.annotations().extra["x-needs-approval"], json!(true));
    assert_eq!(bash.annotations().extra["x-shell"], json!(true));
    assert!(!TrustPolicy::default().allow_shell_unasked);
}

#[test]
fn the_schemas_say_what_is_needed() {
    for (tool, required) in Workspace::new(".").allow_shell().tools().into_iter().zip([
        json!(null),
        json!(["path"]),
        json!(["path", "content"]),
        json!(["path", "old", "new"]),
        json!(["command"]),
    ]) {
        let tool = tool.into_object().unwrap();
        let schema = tool.definition().parameters().unwrap();
        let said = schema.get("required").cloned().unwrap_or_default();
        assert_eq!(said, required, "{}", tool.definition().name());
        assert_eq!(schema["additionalProperties"], json!(false));
    }
}

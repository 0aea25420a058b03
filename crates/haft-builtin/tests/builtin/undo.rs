use std::sync::Arc;

use haft_builtin::Workspace;
use haft_core::{Access, SessionState, SnapshotMeta, ToolContext, Transaction};
use serde_json::json;

use super::{Place, call, call_in};

fn session(workspace: &Workspace) -> SessionState {
    SessionState::builder()
        .resource(Arc::new(workspace.clone()))
        .build()
        .unwrap()
}

async fn write(workspace: &Workspace, transaction: &Transaction, path: &str, text: &str) {
    let context = ToolContext::default()
        .for_call("write_file", transaction.call_id(), Access::Full)
        .with_transaction(transaction.clone());
    let arguments = json!({"path": path, "content": text});
    let output = call_in(workspace, &context, "write_file", arguments).await;
    assert!(output.unwrap().is_success());
}

#[tokio::test]
async fn rolling_back_restores_what_the_call_changed_and_nothing_else() {
    let place = Place::new();
    place.put("old.txt", "old");
    let workspace = place.workspace();
    let state = session(&workspace);
    let (a, b) = (
        state.begin("a", "write_file"),
        state.begin("b", "write_file"),
    );
    write(&workspace, &a, "old.txt", "changed").await;
    write(&workspace, &a, "old.txt", "changed again").await;
    write(&workspace, &a, "new/deep/file.txt", "new").await;
    write(&workspace, &b, "kept.txt", "kept").await;
    b.commit().unwrap();
    a.rollback().unwrap();
    assert_eq!(place.get("old.txt").unwrap(), "old");
    assert!(!place.root().join("new").exists());
    assert_eq!(place.get("kept.txt").unwrap(), "kept");
}

/// Two conversations may both have a `call_1`.
#[tokio::test]
async fn one_conversations_rollback_leaves_anothers_files_alone() {
    let place = Place::new();
    let workspace = place.workspace();
    let (one, two) = (session(&workspace), session(&workspace));
    let (a, b) = (one.begin("call_1", "t"), two.begin("call_1", "t"));
    write(&workspace, &a, "mine", "kept").await;
    b.rollback().unwrap();
    assert_eq!(place.get("mine").unwrap(), "kept");
    a.commit().unwrap();
}

/// R16, for files.
#[tokio::test]
async fn a_committed_siblings_file_stays_when_an_overlapping_call_is_rolled_back() {
    let place = Place::new();
    place.put("f", "first");
    let workspace = place.workspace();
    let state = session(&workspace);
    let (a, b) = (state.begin("a", "t"), state.begin("b", "t"));
    write(&workspace, &a, "f", "from a").await;
    write(&workspace, &b, "f", "from b").await;
    b.commit().unwrap();
    a.rollback().unwrap();
    assert_eq!(place.get("f").unwrap(), "from b");
}

#[tokio::test]
async fn two_calls_that_both_fail_leave_what_was_there_before_them() {
    for a_first in [true, false] {
        let place = Place::new();
        place.put("f", "first");
        let workspace = place.workspace();
        let state = session(&workspace);
        let (a, b) = (state.begin("a", "t"), state.begin("b", "t"));
        write(&workspace, &a, "f", "from a").await;
        write(&workspace, &b, "f", "from b").await;
        let order = if a_first { [a, b] } else { [b, a] };
        for call in order {
            call.rollback().unwrap();
        }
        assert_eq!(place.get("f").unwrap(), "first", "{a_first}");
    }
}

#[tokio::test]
async fn what_somebody_else_changed_since_is_left_alone() {
    let place = Place::new();
    place.put("f", "first");
    let workspace = place.workspace();
    let state = session(&workspace);
    let call = state.begin("a", "t");
    write(&workspace, &call, "f", "from a").await;
    write(&workspace, &call, "dir/mine", "x").await;
    place.put("f", "from a person");
    place.put("dir/theirs", "y");
    call.rollback().unwrap();
    assert_eq!(place.get("f").unwrap(), "from a person");
    assert_eq!(place.get("dir/theirs").unwrap(), "y");
    assert!(place.get("dir/mine").is_none());
}

#[tokio::test]
async fn a_call_that_is_over_changes_no_file_any_more() {
    let place = Place::new();
    let workspace = place.workspace();
    let transaction = session(&workspace).begin("a", "t");
    transaction.rollback().unwrap();
    let context = ToolContext::default().with_transaction(transaction);
    let arguments = json!({"path": "late.txt", "content": "x"});
    let late = call_in(&workspace, &context, "write_file", arguments).await;
    assert_eq!(late.unwrap_err().message(), "the call is over");
    assert!(place.get("late.txt").is_none());
}

#[tokio::test]
async fn a_snapshot_brings_files_back_and_what_the_shell_did_stays() {
    let place = Place::new();
    place.put("f", "first");
    let workspace = place.workspace();
    let state = session(&workspace);
    let snapshot = state.snapshot(SnapshotMeta::manual("s", "t")).unwrap();
    let one = state.begin("a", "t");
    write(&workspace, &one, "f", "second").await;
    write(&workspace, &one, "new/g", "new").await;
    one.commit().unwrap();
    let later = state.snapshot(SnapshotMeta::manual("s2", "t")).unwrap();
    let touched = call(&workspace, "bash", json!({"command": "echo shell > h"}));
    touched.await.unwrap();

    state.restore(&snapshot).unwrap();
    assert_eq!(place.get("f").unwrap(), "first");
    assert!(!place.root().join("new").exists());
    assert_eq!(place.get("h").unwrap(), "shell\n");

    // And forward again: going back was a change like others.
    state.restore(&later).unwrap();
    assert_eq!(place.get("f").unwrap(), "second");
    assert_eq!(place.get("new/g").unwrap(), "new");
}

#[tokio::test]
async fn a_snapshot_of_another_process_is_refused_by_name() {
    let place = Place::new();
    let captured = session(&place.workspace())
        .snapshot(SnapshotMeta::manual("s", "t"))
        .unwrap();
    let error = session(&place.workspace()).restore(&captured).unwrap_err();
    assert!(error.to_string().contains("`workspace`"), "{error}");
}

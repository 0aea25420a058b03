use std::sync::Arc;

use haft_core::{RestoreError, SessionState, Snapshot, SnapshotMeta, SnapshotPhase, StateError};
use serde_json::{Value, json};

use super::{Counter, Events, Notes, Outside, counter, session};

fn meta() -> SnapshotMeta {
    SnapshotMeta::manual("snap_1", "2026-01-02T03:04:05Z")
}

fn with_outside(one: &Arc<Outside>, two: &Arc<Outside>) -> SessionState {
    let state = session();
    state.register_resource(one.clone()).unwrap();
    state.register_resource(two.clone()).unwrap();
    state
}

#[test]
fn a_snapshot_is_written_as_specified() {
    let state = session();
    state
        .register_resource(Outside::named("disk", "abc"))
        .unwrap();
    state
        .update::<Counter>(|counter| counter.value = 4)
        .unwrap();
    let meta = meta()
        .tagged("before")
        .around("call_7", "write_file", SnapshotPhase::PreTool);
    let snapshot = state.snapshot(meta.clone()).unwrap();
    let text = serde_json::to_string(&snapshot).unwrap();
    assert_eq!(
        text,
        concat!(
            r#"{"version":"1","snapshot_id":"snap_1","created_at":"2026-01-02T03:04:05Z","#,
            r#""state":{"counter":{"value":4},"notes":[]},"resources":{"disk":"abc"},"#,
            r#""metadata":{"tag":"before","call_id":"call_7","tool_name":"write_file","#,
            r#""phase":"pre_tool"}}"#
        )
    );
    let read: Snapshot = serde_json::from_str(&text).unwrap();
    assert_eq!(read.meta(), &meta);
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
}

#[test]
fn a_snapshot_brings_state_and_resources_back_and_leaves_logs() {
    let (one, two) = (Outside::named("one", "1"), Outside::named("two", "2"));
    let state = with_outside(&one, &two);
    state
        .update::<Counter>(|counter| counter.value = 4)
        .unwrap();
    let live = state.snapshot(meta()).unwrap();
    let stored: Snapshot = serde_json::from_value(serde_json::to_value(&live).unwrap()).unwrap();
    for snapshot in [live, stored] {
        state.set_all(9, "changed", &[&one, &two]);
        state.restore(&snapshot).unwrap();
        assert_eq!(
            (counter(&state), one.content(), two.content()),
            (4, "1".into(), "2".into())
        );
        assert_eq!(state.get::<Events>().unwrap().0.last().unwrap(), "changed");
    }
}

trait SetAll {
    fn set_all(&self, value: i64, text: &str, resources: &[&Arc<Outside>]);
}

impl SetAll for SessionState {
    fn set_all(&self, value: i64, text: &str, resources: &[&Arc<Outside>]) {
        self.update::<Counter>(|counter| counter.value = value)
            .unwrap();
        self.update::<Events>(|events| events.0.push(text.into()))
            .unwrap();
        for resource in resources {
            *resource.content.lock().unwrap() = text.into();
        }
    }
}

/// A snapshot that says this, beside what every snapshot says.
fn snapshot(change: impl FnOnce(&mut Value)) -> Snapshot {
    let mut json = json!({
        "version": "1", "snapshot_id": "s", "created_at": "t",
        "state": {"counter": {"value": 1}}, "resources": {},
        "metadata": {"tag": null, "call_id": null, "tool_name": null, "phase": "manual"}
    });
    change(&mut json);
    serde_json::from_value(json).unwrap()
}

#[test]
fn a_slice_that_the_snapshot_lacks_becomes_empty() {
    let state = session();
    state.update::<Notes>(|notes| notes.0.push(1)).unwrap();
    state.restore(&snapshot(|_| ())).unwrap();
    assert_eq!(counter(&state), 1);
    assert!(state.get::<Notes>().unwrap().0.is_empty());
}

#[test]
fn a_restore_that_fails_names_what_failed_and_leaves_everything_as_it_was() {
    let (one, two) = (Outside::named("one", "1"), Outside::named("two", "2"));
    let state = with_outside(&one, &two);
    *two.failing.lock().unwrap() = true;
    state
        .update::<Counter>(|counter| counter.value = 4)
        .unwrap();
    let cases: [(Snapshot, &str); 6] = [
        (
            snapshot(|json| json["version"] = json!("2")),
            "unknown snapshot version `2`",
        ),
        (
            snapshot(|json| json["state"]["gone"] = json!(1)),
            "unknown slice `gone`",
        ),
        (
            snapshot(|json| json["state"]["events"] = json!([])),
            "unknown slice `events`",
        ),
        (
            snapshot(|json| json["state"]["notes"] = json!([1, "x"])),
            "the slice `notes` cannot be read: at `[1]`",
        ),
        (
            snapshot(|json| json["resources"]["gone"] = json!(1)),
            "unknown resource `gone`",
        ),
        (
            snapshot(|json| json["resources"] = json!({"one": "x", "two": "y"})),
            "the resource `two` failed: disk full",
        ),
    ];
    for (snapshot, text) in cases {
        let error = state.restore(&snapshot).unwrap_err().to_string();
        assert!(error.starts_with(text), "{error}");
        assert_eq!(
            (counter(&state), one.content(), two.content()),
            (4, "1".into(), "2".into())
        );
    }
    // The first one was restored, and put back.
    assert_eq!(*one.asked.lock().unwrap(), ["restore", "restore"]);
}

#[test]
fn open_calls_keep_their_journals_over_a_restore() {
    let state = session();
    let call = state.begin("call_1", "add");
    call.update::<Counter>(|counter| counter.value += 5)
        .unwrap();
    state.restore(&snapshot(|_| ())).unwrap();
    assert_eq!(call.get::<Counter>().unwrap().value, 6);
    call.commit().unwrap();
    assert_eq!(counter(&state), 6);
}

#[test]
fn a_stored_session_keeps_every_slice() {
    let state = session();
    state.set_all(3, "happened", &[]);
    let stored = state.to_value().unwrap();
    assert_eq!(
        stored,
        json!({"counter": {"value": 3}, "events": ["happened"], "notes": []})
    );
    let again = session();
    again.load(&stored).unwrap();
    assert_eq!(again.to_value().unwrap(), stored);
    let error = again.load(&json!({"counter": {"value": 8}, "b": 1, "a": 1}));
    assert_eq!(
        error.unwrap_err().to_string(),
        "unknown slice `b`, `a`: register the types that the state was written with"
    );
    assert_eq!(again.load(&json!([])), Err(RestoreError::NotAnObject));
    assert_eq!(again.to_value().unwrap(), stored);
}

#[test]
fn a_value_without_json_form_is_named() {
    use std::collections::BTreeMap;

    #[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
    struct Grid(BTreeMap<(u8, u8), u8>);
    impl haft_core::Slice for Grid {
        const NAME: &'static str = "grid";
    }
    let state = SessionState::builder().slice::<Grid>().build().unwrap();
    state
        .update::<Grid>(|grid| grid.0 = BTreeMap::from([((1, 2), 3)]))
        .unwrap();
    let error = state.to_value().unwrap_err();
    assert!(
        matches!(&error, StateError::NoJson { slice, .. } if slice == "grid"),
        "{error}"
    );
    let snapshot = state.snapshot(meta()).unwrap();
    let error = serde_json::to_string(&snapshot).unwrap_err();
    assert!(error.to_string().contains("`grid`"), "{error}");
}

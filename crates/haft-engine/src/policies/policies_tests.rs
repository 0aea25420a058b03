use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft_core::{
    FileSystem, HydrationResult, Provenance, RawArguments, ToolDefinition, TrustPolicy,
};
use serde_json::{Value, json};

use super::*;

fn definition(name: &str) -> Arc<ToolDefinition> {
    ToolDefinition::builder(name)
        .parameters(json!({"type": "object"}))
        .build()
        .unwrap()
}

fn hydrated(name: &str, arguments: Value) -> HydrationResult {
    HydrationResult {
        tool: None,
        errors: Vec::new(),
        provenance: Provenance {
            provider_tool_id: name.into(),
            call_id: "call_1".into(),
            tool_name: Some(name.into()),
            definition_fingerprint: None,
            original_raw_args: RawArguments::Text(arguments.to_string()),
            parsed: Some(arguments.clone()),
            validated: Some(arguments),
            validator: None,
            repaired: false,
            repair: None,
            unvalidated: false,
            no_schema_mode: None,
            source: None,
            at: String::new(),
        },
    }
}

/// A session in which one policy watches.
struct Watched {
    state: SessionState,
    policies: Vec<Arc<dyn Policy>>,
}

impl Watched {
    fn by(policy: impl Policy) -> Self {
        let state = SessionState::default();
        policy.register(&state).unwrap();
        Self {
            state,
            policies: vec![Arc::new(policy)],
        }
    }

    fn check(&self, tool: &str, arguments: Value) -> Verdict {
        let (hydration, definition) = (hydrated(tool, arguments), definition(tool));
        let call = PolicyCall {
            hydration: &hydration,
            definition: &definition,
        };
        check_all(&self.policies, &call, &self.state)
    }

    fn succeeds(&self, tool: &str, arguments: Value) -> Transaction {
        let (hydration, definition) = (hydrated(tool, arguments), definition(tool));
        let call = PolicyCall {
            hydration: &hydration,
            definition: &definition,
        };
        let transaction = self.state.begin("call_1", tool);
        tell_all(
            &self.policies,
            &call,
            &ToolOutput::text("done"),
            &transaction,
        );
        transaction
    }
}

fn allowed() -> Verdict {
    Verdict::Allow(Access::Full)
}

fn denied(reason: &str) -> Verdict {
    Verdict::Deny(reason.to_owned())
}

#[test]
fn a_tool_runs_only_after_its_prerequisites_have_succeeded() {
    let session = Watched::by(SequentialDependency::new().after("deploy", ["test", "build"]));
    assert_eq!(
        session.check("deploy", json!({})),
        denied("Tool 'deploy' must run after: build, test.")
    );
    assert_eq!(session.check("test", json!({})), allowed());
    session.succeeds("build", json!({})).commit().unwrap();
    assert_eq!(
        session.check("deploy", json!({})),
        denied("Tool 'deploy' must run after: test.")
    );
    session.succeeds("test", json!({})).commit().unwrap();
    assert_eq!(session.check("deploy", json!({})), allowed());
}

#[test]
fn a_success_that_was_rolled_back_does_not_count() {
    let session = Watched::by(SequentialDependency::new().after("deploy", ["build"]));
    session.succeeds("build", json!({})).rollback().unwrap();
    assert_eq!(
        session.check("deploy", json!({})),
        denied("Tool 'deploy' must run after: build.")
    );
}

#[test]
fn policies_with_memory_hold_only_the_calls_that_they_are_about() {
    let order = SequentialDependency::new().after("deploy", ["build"]);
    let files = ReadBeforeWrite::new();
    let held = |policy: &dyn Policy, tool: &str| policy.has_memory(&definition(tool));
    assert!(held(&order, "deploy") && held(&order, "build") && !held(&order, "read_file"));
    assert!(held(&files, "read_file") && held(&files, "edit_file") && !held(&files, "build"));
    assert!(!held(&TrustPolicy::default(), "build"));
}

struct Disk(Mutex<BTreeSet<String>>);

impl Disk {
    fn with(paths: &[&str]) -> Self {
        Self(Mutex::new(
            paths.iter().map(|path| (*path).to_owned()).collect(),
        ))
    }
}

impl FileSystem for Disk {
    fn exists(&self, path: &str) -> bool {
        self.0.lock().unwrap().contains(path)
    }
}

#[test]
fn an_existing_file_is_written_only_after_it_was_read() {
    let policy = ReadBeforeWrite::new()
        .files(Disk::with(&["src/a.rs"]))
        .mount("/workspace");
    let session = Watched::by(policy);
    let write = || session.check("write_file", json!({"path": "./src/a.rs"}));
    assert_eq!(write(), denied("Read 'src/a.rs' before writing to it."));
    assert_eq!(
        session.check("edit_file", json!({"file_path": "/workspace/src/a.rs"})),
        denied("Read 'src/a.rs' before writing to it.")
    );
    let reading = json!({"path": "/src/x/../a.rs"});
    assert_eq!(session.check("read_file", reading.clone()), allowed());
    session
        .succeeds("read_file", reading.clone())
        .rollback()
        .unwrap();
    assert_ne!(write(), allowed());
    session.succeeds("read_file", reading).commit().unwrap();
    assert_eq!(write(), allowed());
}

#[test]
fn a_new_file_may_be_written_and_then_written_again() {
    let disk = Arc::new(Disk::with(&[]));
    let session = Watched::by(ReadBeforeWrite::new().files(disk.clone()));
    let writing = json!({"path": "new.txt"});
    assert_eq!(session.check("write_file", writing.clone()), allowed());
    session
        .succeeds("write_file", writing.clone())
        .commit()
        .unwrap();
    disk.0.lock().unwrap().insert("new.txt".into());
    assert_eq!(session.check("edit_file", writing), allowed());
}

#[test]
fn without_a_file_system_or_a_path_every_write_is_allowed() {
    let blind = Watched::by(ReadBeforeWrite::new());
    assert_eq!(blind.check("write_file", json!({"path": "a"})), allowed());
    let session = Watched::by(ReadBeforeWrite::new().files(Disk::with(&["a"])));
    assert_eq!(session.check("write_file", json!({"to": "a"})), allowed());
    assert_eq!(session.check("write_file", json!({"path": 7})), allowed());
    assert_eq!(
        session.check("append_file", json!({"path": "a"})),
        allowed()
    );
}

struct Says(Verdict, AtomicUsize);

impl Policy for Says {
    fn name(&self) -> &'static str {
        "says"
    }

    fn check(&self, _: &PolicyCall<'_>, _: &SessionState) -> Verdict {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.clone()
    }
}

struct Broken;

impl Policy for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn check(&self, _: &PolicyCall<'_>, _: &SessionState) -> Verdict {
        panic!("hunter2")
    }

    fn on_result(&self, _: &PolicyCall<'_>, _: &ToolOutput, _: &Transaction) {
        panic!("hunter2")
    }
}

#[test]
fn the_first_denial_ends_the_check_and_else_the_strictest_wins() {
    let says = |verdict| Arc::new(Says(verdict, AtomicUsize::new(0)));
    let ask = says(Verdict::NeedApproval("big".into()));
    let (first, second) = (says(denied("first")), says(denied("second")));
    let session = Watched {
        state: SessionState::default(),
        policies: vec![ask.clone(), first, second.clone()],
    };
    assert_eq!(session.check("t", json!({})), denied("first"));
    assert_eq!(second.1.load(Ordering::Relaxed), 0);
    let session = Watched {
        state: SessionState::default(),
        policies: vec![says(allowed()), ask, says(allowed())],
    };
    assert_eq!(
        session.check("t", json!({})),
        Verdict::NeedApproval("big".into())
    );
    let nobody = Watched {
        state: SessionState::default(),
        policies: Vec::new(),
    };
    assert_eq!(nobody.check("t", json!({})), allowed());
}

#[test]
fn a_policy_that_panics_denies_and_its_words_do_not_reach_the_model() {
    let session = Watched::by(Broken);
    assert_eq!(
        session.check("t", json!({})),
        denied("Tool 't' was not run: its policy 'broken' failed.")
    );
    session.succeeds("t", json!({})).commit().unwrap();
}

#[test]
fn a_policy_whose_memory_was_not_registered_denies() {
    let session = Watched {
        state: SessionState::default(),
        policies: vec![Arc::new(SequentialDependency::new().after("b", ["a"]))],
    };
    session.succeeds("a", json!({})).commit().unwrap();
    assert_eq!(
        session.check("b", json!({})),
        denied("Tool 'b' must run after: a.")
    );
}

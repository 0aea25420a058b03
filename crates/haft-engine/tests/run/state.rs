//! Session state in transactions, policies with memory, feedback, long results.

use std::sync::Arc;
use std::time::Duration;

use haft_core::{
    FileSystem, Item, SessionState, Slice, ToolError, ToolObject, ToolOutput, dynamic_tool,
};
use haft_engine::{
    CallStatus, Feedback, FeedbackTrigger, LoopDetection, ReadBeforeWrite, Reminder, Run,
    SequentialDependency, Session,
};
use serde::{Deserialize, Serialize};

use crate::script::{Script, calls, says};
use crate::texts;
use crate::tools::{definition, echo, tool};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Notes(Vec<String>);

impl Slice for Notes {
    const NAME: &'static str = "notes";
}

fn notes() -> SessionState {
    SessionState::builder().slice::<Notes>().build().unwrap()
}

/// Notes its text after so many milliseconds, and fails if it says `fail`.
fn note(name: &str, milliseconds: u64) -> Arc<dyn ToolObject> {
    let definition = definition(name, haft_core::Annotations::default());
    dynamic_tool(definition, move |arguments, context| async move {
        let text = arguments["text"].as_str().unwrap_or_default().to_owned();
        let noted = text.clone();
        context.update::<Notes>(move |notes| notes.0.push(noted.clone()))?;
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        if text == "fail" {
            return Err(ToolError::new("kaput"));
        }
        Ok(context.slice::<Notes>()?.0.len())
    })
}

/// R16
#[tokio::test(start_paused = true)]
async fn a_failed_call_is_undone_without_touching_its_siblings() {
    let state = notes();
    let model = Script::new([
        calls([
            ("a", "slow", r#"{"text":"fail"}"#),
            ("b", "fast", r#"{"text":"kept"}"#),
            ("c", "slow", r#"{"text":"also kept"}"#),
        ]),
        says("done"),
    ]);
    let outcome = Run::new(model)
        .tools([note("slow", 50), note("fast", 1)])
        .state(state.clone())
        .user("go")
        .await
        .unwrap();
    assert_eq!(outcome.tool_calls[0].status, CallStatus::Failed);
    assert_eq!(state.get::<Notes>().unwrap().0, ["kept", "also kept"]);
}

#[tokio::test]
async fn state_travels_with_the_session() {
    let script = || Script::new([calls([("", "fast", r#"{"text":"x"}"#)]), says("done")]);
    let run = || Run::new(script()).tools([note("fast", 0)]).user("go");
    let first = run().state(notes()).await.unwrap();
    let stored = serde_json::to_string(&first.session).unwrap();
    let session: Session = serde_json::from_str(&stored).unwrap();
    let state = notes();
    let second = run().state(state.clone()).session(session).await.unwrap();
    assert_eq!(state.get::<Notes>().unwrap().0.len(), 2);
    assert_eq!(texts(&second), ["2"]);
}

#[tokio::test]
async fn a_session_whose_state_nobody_registered_is_refused() {
    let script = || Script::new([calls([("", "fast", r#"{"text":"x"}"#)]), says("done")]);
    let run = || Run::new(script()).tools([note("fast", 0)]).user("go");
    let first = run().state(notes()).await.unwrap();
    let refused = run().session(first.session).await;
    assert!(refused.unwrap_err().to_string().contains("notes"));
}

fn step(name: &'static str) -> Arc<dyn ToolObject> {
    tool(name, move |text| {
        if text == "fail" {
            return Ok(ToolOutput::failure("no"));
        }
        Ok(ToolOutput::text(name))
    })
}

#[tokio::test]
async fn a_tool_waits_for_those_that_it_depends_on() {
    let model = Script::new([
        calls([
            ("a", "deploy", "{}"),
            ("b", "build", r#"{"text":"fail"}"#),
            ("c", "deploy", "{}"),
        ]),
        calls([("d", "build", "{}"), ("e", "deploy", "{}")]),
        calls([("f", "test", "{}"), ("g", "deploy", "{}")]),
        says("done"),
    ]);
    let outcome = Run::new(model)
        .tools([step("build"), step("test"), step("deploy")])
        .policy(SequentialDependency::new().after("deploy", ["test", "build"]))
        .loop_detection(LoopDetection::off())
        .user("go")
        .await
        .unwrap();
    assert_eq!(
        texts(&outcome),
        [
            "Tool 'deploy' must run after: build, test.",
            "no",
            "Tool 'deploy' must run after: build, test.",
            "build",
            "Tool 'deploy' must run after: test.",
            "test",
            "deploy",
        ]
    );
    assert_eq!(outcome.tool_calls[0].status, CallStatus::Denied);
}

struct Disk;

impl FileSystem for Disk {
    fn exists(&self, path: &str) -> bool {
        path == "src/a.rs"
    }
}

#[tokio::test]
async fn an_existing_file_must_be_read_before_it_is_written() {
    let file = |name: &str| {
        let definition = haft_core::ToolDefinition::builder(name)
            .parameters(serde_json::json!({
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"]
            }))
            .build()
            .unwrap();
        dynamic_tool(definition, |_, _| async { Ok("ok") })
    };
    let model = Script::new([
        calls([
            ("a", "write_file", r#"{"path":"./src/a.rs"}"#),
            ("b", "write_file", r#"{"path":"new.rs"}"#),
            ("c", "read_file", r#"{"path":"src/a.rs"}"#),
            ("d", "write_file", r#"{"path":"src/../src/a.rs"}"#),
        ]),
        says("done"),
    ]);
    let outcome = Run::new(model)
        .tools([file("read_file"), file("write_file")])
        .policy(ReadBeforeWrite::new().files(Disk))
        .user("go")
        .await
        .unwrap();
    assert_eq!(
        texts(&outcome),
        ["Read 'src/a.rs' before writing to it.", "ok", "ok", "ok"]
    );
}

#[tokio::test]
async fn feedback_is_appended_to_the_tool_message() {
    let model = Script::new([
        calls([("a", "echo", r#"{"text":"1"}"#)]),
        calls([("b", "echo", r#"{"text":"2"}"#)]),
        says("done"),
    ]);
    let reminder = Reminder::new("tests", "Run the tests.").when(FeedbackTrigger::EveryNCalls(2));
    let outcome = Run::new(model)
        .tools([echo()])
        .feedback(Feedback::new().provider(reminder))
        .user("go")
        .await
        .unwrap();
    assert_eq!(texts(&outcome), ["1", "2\n\nRun the tests."]);
}

#[tokio::test]
async fn a_long_result_is_kept_in_a_file_and_can_be_recalled() {
    let long = tool("long", |_| Ok(ToolOutput::text("abcdefgh".repeat(1000))));
    let recall = |id, offset: u32, limit: u32| {
        let arguments = format!(r#"{{"tool_call_id":"a","offset":{offset},"limit":{limit}}}"#);
        (id, arguments)
    };
    let (near, far) = (recall("b", 0, 8), recall("c", 7996, 4096));
    let model = Script::new([
        calls([("a", "long", "{}")]),
        calls([
            ("b", "recall_tool_result", &near.1),
            ("c", "recall_tool_result", &far.1),
            ("d", "recall_tool_result", r#"{"tool_call_id":"x"}"#),
        ]),
        says("done"),
    ]);
    let directory = tempfile::tempdir().unwrap();
    let outcome = Run::new(model.clone())
        .tools([long])
        .spill(4096)
        .spill_directory(directory.path())
        .user("go")
        .await
        .unwrap();
    let texts = texts(&outcome);
    let note = "\n\n[Result truncated: 8000 bytes in total. Call recall_tool_result with \
                tool_call_id \"a\" to read more.]";
    assert_eq!(texts[0], format!("{}{note}", "abcdefgh".repeat(64)));
    assert_eq!(
        &texts[1..],
        ["abcdefgh", "efgh", "Unknown tool_call_id 'x'."]
    );
    let offered: Vec<_> = model.received()[0]
        .tools
        .iter()
        .map(|tool| tool.definition().name().to_string())
        .collect();
    assert_eq!(offered, ["long", "recall_tool_result"]);
    // The files went with the run.
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn errors_are_never_put_away() {
    let long = tool("long", |_| Ok(ToolOutput::failure("no ".repeat(5000))));
    let model = Script::new([calls([("a", "long", "{}")]), says("done")]);
    let outcome = Run::new(model)
        .tools([long])
        .spill(100)
        .user("go")
        .await
        .unwrap();
    assert_eq!(texts(&outcome)[0].len(), 15_000);
}

#[tokio::test]
async fn with_spilling_a_result_may_be_large() {
    let large = tool("large", |_| Ok(ToolOutput::text("x".repeat(5 << 20))));
    let model = Script::new([calls([("a", "large", "{}")]), says("done")]);
    let outcome = Run::new(model)
        .tools([large])
        .spill(4096)
        .user("go")
        .await
        .unwrap();
    assert_eq!(outcome.tool_calls[0].status, CallStatus::Succeeded);
    let Item::FunctionCallOutput(output) = &outcome.items[1] else {
        panic!("{:?}", outcome.items)
    };
    assert!(output.output.to_text().len() < 1000);
}

#[tokio::test]
async fn a_tool_knows_whether_long_results_are_kept() {
    for spill in [None, Some(4096)] {
        let definition = haft_core::ToolDefinition::builder("ask")
            .parameters(serde_json::json!({"type": "object"}))
            .build()
            .unwrap();
        let ask = haft_core::dynamic_tool(definition, |_, context| async move {
            Ok(context.keeps_long_results())
        });
        let model = Script::new([calls([("a", "ask", "{}")]), says("done")]);
        let run = Run::new(model).tools([ask]);
        let run = match spill {
            Some(bytes) => run.spill(bytes),
            None => run,
        };
        let outcome = run.user("go").await.unwrap();
        assert_eq!(texts(&outcome)[0], spill.is_some().to_string());
    }
}

#[tokio::test]
async fn a_long_result_that_cannot_be_kept_is_shortened_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let gone = directory.path().to_owned();
    let long = tool("long", move |_| {
        // The directory for long results vanishes while the tool runs.
        std::fs::remove_dir_all(&gone).unwrap();
        Ok(ToolOutput::text("x".repeat(10_000)))
    });
    let model = Script::new([calls([("a", "long", "{}")]), says("done")]);
    let outcome = Run::new(model)
        .tools([long])
        .spill(4096)
        .spill_directory(directory.path())
        .user("go")
        .await
        .unwrap();
    let text = &texts(&outcome)[0];
    let end = "[Result truncated: 10000 bytes in total. The rest could not be kept.]";
    assert!(text.len() < 700 && text.ends_with(end), "{text}");
}

#[tokio::test]
async fn a_long_result_can_be_recalled_after_a_wait() {
    let directory = tempfile::tempdir().unwrap();
    let model = Script::new([
        calls([("a", "long", "{}"), ("b", "ask", "{}")]),
        calls([(
            "c",
            "recall_tool_result",
            r#"{"tool_call_id":"a","limit":4}"#,
        )]),
        says("done"),
    ]);
    let run = || {
        let long = tool("long", |_| Ok(ToolOutput::text("abcd".repeat(5000))));
        Run::new(model.clone())
            .tools([long, crate::tools::function("ask")])
            .tool_choice(haft_core::ToolChoice::allowed(["long", "ask"]))
            .spill(4096)
            .spill_directory(directory.path())
    };
    let first = run().user("go").await.unwrap();
    let stored = serde_json::to_string(&first.session).unwrap();
    drop(first);
    let session: Session = serde_json::from_str(&stored).unwrap();
    let second = run().session(session).output("b", "x").await.unwrap();
    assert_eq!(texts(&second)[2], "abcd");
    drop(second);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

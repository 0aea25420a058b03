//! Runs whose process dies while calls are under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft_core::{Annotations, ToolObject, ToolOutput};
use haft_engine::{CallStatus, End, EventKind, Outcome, Run, Session, Step};

use crate::script::{Reply, Script, calls, says};
use crate::texts;
use crate::tools::{annotated, function};

/// Counts its calls.
fn counted(name: &str, annotations: Annotations) -> (Arc<dyn ToolObject>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let tool = annotated(name, annotations, move |text| {
        counter.fetch_add(1, Ordering::SeqCst);
        Ok(ToolOutput::text(text))
    });
    (tool, count)
}

fn read_only() -> Annotations {
    Annotations {
        read_only: true,
        ..Annotations::default()
    }
}

fn idempotent() -> Annotations {
    Annotations {
        idempotent: true,
        ..Annotations::default()
    }
}

/// Reads a run up to a journal, the first or a later one, and lets it die there.
async fn dies_at_journal(run: Run, which: usize) -> (Session, Vec<EventKind>) {
    let mut stream = run.journaled().start().unwrap();
    let mut seen = 0;
    let mut events = Vec::new();
    while let Some(step) = stream.next_step().await {
        match step {
            Step::Event(event) => events.push(event.kind),
            Step::Journal if seen == which => {
                let stored = serde_json::to_string(stream.session()).unwrap();
                return (serde_json::from_str(&stored).unwrap(), events);
            }
            Step::Journal => seen += 1,
            _ => {}
        }
    }
    panic!("there was no such journal");
}

fn two_calls() -> Reply {
    calls([
        ("a", "look", r#"{"text":"1"}"#),
        ("b", "pay", r#"{"text":"2"}"#),
    ])
}

#[tokio::test]
async fn what_may_be_repeated_is_repeated_and_of_the_rest_nobody_knows() {
    for harmless in [read_only(), idempotent()] {
        let (look, looks) = counted("look", harmless);
        let (pay, pays) = counted("pay", Annotations::default());
        let run = |model: &Script| Run::new(model.clone()).tools([look.clone(), pay.clone()]);
        let (session, _) = dies_at_journal(run(&Script::new([two_calls()])).user("go"), 0).await;
        assert_eq!(pays.load(Ordering::SeqCst), 0, "it is noted before it runs");
        let rest = Script::new([says("done")]);
        let outcome = run(&rest).session(session).await.unwrap();
        assert!(matches!(outcome.end, End::Completed));
        assert_eq!(looks.load(Ordering::SeqCst), 1);
        assert_eq!(pays.load(Ordering::SeqCst), 0, "it may have run before");
        let told = texts(&outcome);
        assert_eq!(told[0], "1");
        assert!(
            told[1].contains("Whether it took effect is unknown"),
            "{told:?}"
        );
        let status = outcome.tool_calls[1].status;
        assert_eq!(status, CallStatus::OutcomeUnknown);
        assert_eq!(rest.received()[0].conversation.verify(), Ok(()));
    }
}

#[tokio::test]
async fn what_had_ended_keeps_its_result_and_is_not_told_again() {
    let (look, _) = counted("look", read_only());
    let (pay, pays) = counted("pay", Annotations::default());
    let run = |model: &Script| {
        // One at a time: the second begins when the first has ended.
        let tools = [pay.clone(), look.clone()];
        Run::new(model.clone()).tools(tools).max_parallel(1)
    };
    let both = calls([
        ("a", "pay", r#"{"text":"1"}"#),
        ("b", "look", r#"{"text":"2"}"#),
    ]);
    let (session, events) = dies_at_journal(run(&Script::new([both])).user("go"), 1).await;
    let invoked =
        |kind: &EventKind| matches!(kind, EventKind::ToolInvoked { call_id, .. } if call_id == "a");
    assert!(events.iter().any(invoked), "the news come first");
    let mut stream = run(&Script::new([says("done")]))
        .session(session)
        .journaled()
        .start()
        .unwrap();
    while let Some(event) = stream.next().await {
        assert!(!invoked(&event.kind), "told twice");
    }
    let outcome: Outcome = stream.finish().await;
    assert_eq!(texts(&outcome), ["1", "2"]);
    assert_eq!(pays.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn calls_of_the_caller_are_handed_over_after_all() {
    let (look, _) = counted("look", read_only());
    let run = |model: &Script| Run::new(model.clone()).tools([look.clone(), function("ask")]);
    let both = calls([("a", "ask", "{}"), ("b", "look", r#"{"text":"2"}"#)]);
    let (session, _) = dies_at_journal(run(&Script::new([both])).user("go"), 0).await;
    let waiting = run(&Script::new([])).session(session).await.unwrap();
    assert!(matches!(waiting.end, End::Waiting(_)));
    let pending: Vec<_> = waiting.session.pending_calls().collect();
    assert_eq!(pending, ["a"]);
    let rest = Script::new([says("done")]);
    let outcome = run(&rest).session(waiting.session).output("a", "yes").await;
    assert_eq!(texts(&outcome.unwrap()), ["yes", "2"]);
}

#[tokio::test]
async fn the_call_limit_counts_a_repeated_call_once() {
    let (look, looks) = counted("look", read_only());
    let run = |model: &Script| {
        let run = Run::new(model.clone()).tools([look.clone()]);
        run.max_tool_calls(1)
    };
    let one = calls([("a", "look", r#"{"text":"1"}"#)]);
    let (session, _) = dies_at_journal(run(&Script::new([one])).user("go"), 0).await;
    let outcome = run(&Script::new([says("done")])).session(session).await;
    assert!(matches!(outcome.unwrap().end, End::Completed));
    assert_eq!(looks.load(Ordering::SeqCst), 1);
}

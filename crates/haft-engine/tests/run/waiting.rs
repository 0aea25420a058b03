//! Functions of the caller: the run waits for their outputs and goes on with them.

use haft_core::Item;
use haft_engine::{CallStatus, End, ResumeError, Run, RunError, Session, Waiting};
use serde_json::json;

use crate::script::{Script, calls, says};
use crate::tools::{echo, function};
use crate::{outputs, texts};

fn waiting(end: &End) -> &Waiting {
    match end {
        End::Waiting(waiting) => waiting,
        other => panic!("{other:?}"),
    }
}

/// Through JSON, as another process would see it.
fn stored(session: &Session) -> Session {
    let text = serde_json::to_string(session).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn a_function_call_is_handed_back_with_its_validated_arguments() {
    let model = Script::new([calls([("a", "ask", r#" {"text": "who?"}"#)])]);
    let outcome = Run::new(model)
        .tools([function("ask")])
        .user("go")
        .await
        .unwrap();
    let call = &waiting(&outcome.end).calls[0];
    assert_eq!((call.call_id.as_str(), call.name.as_str()), ("a", "ask"));
    assert_eq!(call.arguments, r#" {"text": "who?"}"#);
    assert_eq!(
        call.hydration.provenance.validated,
        Some(json!({"text": "who?"}))
    );
    assert_eq!(outcome.session.pending_calls().collect::<Vec<_>>(), ["a"]);
}

#[tokio::test]
async fn the_run_goes_on_in_another_process_with_the_same_continuation() {
    let script = || {
        Script::new([
            calls([("a", "echo", r#"{"text":"here"}"#), ("b", "ask", "{}")]),
            says("done"),
        ])
    };
    let model = script();
    let run = |model: &Script| Run::new(model.clone()).tools([echo(), function("ask")]);
    let first = run(&model).user("go").await.unwrap();
    assert_eq!(outputs(&first.items), [("a".into(), "here".into())]);

    let second = run(&model)
        .session(stored(&first.session))
        .output("b", "there")
        .await
        .unwrap();
    assert!(second.is_completed());
    assert_eq!(texts(&second), ["here", "there"]);
    assert_eq!(second.rounds, 1);
    let sent: Vec<_> = model.received()[1].conversation.items().cloned().collect();
    let expected = [
        Item::user("go"),
        Item::function_call("a", "echo", r#"{"text":"here"}"#),
        Item::function_call("b", "ask", "{}"),
        Item::function_call_output("a", "here"),
        Item::function_call_output("b", "there"),
    ];
    assert_eq!(sent, expected);
    assert_eq!(second.tool_calls[1].status, CallStatus::Answered);
}

#[tokio::test]
async fn calls_with_wrong_arguments_are_handed_over_where_the_caller_wants_them() {
    for arguments in [r#"{"text":5}"#, r#"{"text":"#, "nonsense"] {
        let model = Script::new([calls([("a", "ask", arguments), ("b", "ask", "{}")])]);
        let outcome = Run::new(model)
            .tools([function("ask")])
            .hand_over_refused(true)
            .user("go")
            .await
            .unwrap();
        let [first, second] = &*waiting(&outcome.end).calls else {
            panic!("{:?}", outcome.end)
        };
        assert_eq!((&*first.call_id, &*first.arguments), ("a", arguments));
        assert!(!first.hydration.success() && second.hydration.success());
        assert_eq!(outcome.session.pending_calls().count(), 2);
    }
}

#[tokio::test]
async fn calls_of_tools_that_are_not_there_are_never_handed_over() {
    let model = Script::new([calls([("a", "nobody", "{}")]), says("done")]);
    let outcome = Run::new(model)
        .tools([function("ask")])
        .hand_over_refused(true)
        .user("go")
        .await
        .unwrap();
    assert!(outcome.is_completed());
}

#[tokio::test]
async fn a_function_call_that_fails_is_answered_with_its_error_and_the_rest_waits() {
    let model = Script::new([
        calls([("a", "ask", r#"{"text":5}"#), ("b", "ask", "{}")]),
        says("done"),
    ]);
    let outcome = Run::new(model)
        .tools([function("ask")])
        .user("go")
        .await
        .unwrap();
    let open = waiting(&outcome.end);
    assert_eq!(open.calls.len(), 1);
    assert_eq!(open.calls[0].call_id, "b");
    assert!(outputs(&outcome.items)[0].1.contains("invalid arguments"));
}

#[tokio::test]
async fn only_a_bad_function_call_does_not_wait() {
    let model = Script::new([calls([("a", "ask", "oops")]), says("done")]);
    let outcome = Run::new(model).tools([function("ask")]).user("go").await;
    assert!(outcome.unwrap().is_completed());
}

/// R41
#[tokio::test]
async fn outputs_must_answer_exactly_the_open_calls() {
    let model = Script::new([calls([("a", "ask", "{}"), ("b", "ask", "{}")])]);
    let run = || Run::new(model.clone()).tools([function("ask")]);
    let first = run().user("go").await.unwrap();
    let resume = |outputs: &'static [&'static str]| {
        let resumed = run().session(first.session.clone());
        outputs.iter().fold(resumed, |run, id| run.output(*id, "x"))
    };
    let id = |id: &str| id.to_owned();
    let error = |result: Result<_, RunError>| match result {
        Err(RunError::Resume(error)) => error,
        other => panic!("{:?}", other.map(|_: haft_engine::Outcome| ())),
    };
    assert_eq!(
        error(resume(&["a", "b", "zz"]).await),
        ResumeError::UnknownCall { call_id: id("zz") }
    );
    assert_eq!(
        error(resume(&["a"]).await),
        ResumeError::MissingOutput { call_id: id("b") }
    );
    assert_eq!(
        error(resume(&["a", "a", "b"]).await),
        ResumeError::DuplicateAnswer { call_id: id("a") }
    );
    let fresh = Run::new(Script::new([])).user("hi").output("a", "x").await;
    assert_eq!(error(fresh), ResumeError::UnknownCall { call_id: id("a") });
}

#[tokio::test]
async fn a_failed_output_is_kept_as_an_error() {
    let model = Script::new([calls([("a", "ask", "{}")]), says("done")]);
    let run = || Run::new(model.clone()).tools([function("ask")]);
    let first = run().user("go").await.unwrap();
    let second = run()
        .session(first.session)
        .failed_output("a", "nobody there")
        .await
        .unwrap();
    let Item::FunctionCallOutput(output) = &second.items[0] else {
        panic!("{:?}", second.items)
    };
    assert!(output.is_error);
}

#[tokio::test]
async fn something_said_with_the_outputs_comes_behind_them() {
    let model = Script::new([calls([("a", "ask", "{}")]), says("done")]);
    let run = || Run::new(model.clone()).tools([function("ask")]);
    let first = run().user("go").await.unwrap();
    let _ = run()
        .session(first.session)
        .output("a", "x")
        .user("and hurry")
        .await
        .unwrap();
    let sent = model.received()[1].conversation.clone();
    assert_eq!(sent.items().last(), Some(&Item::user("and hurry")));
    assert!(sent.verify().is_ok());
}

#[tokio::test]
async fn limits_count_on_over_a_wait() {
    let model = Script::new([
        calls([("a", "ask", "{}")]),
        calls([("b", "echo", r#"{"text":"1"}"#)]),
        says("enough"),
    ]);
    let run = || {
        Run::new(model.clone())
            .tools([echo(), function("ask")])
            .max_rounds(1)
    };
    let first = run().user("go").await.unwrap();
    let second = run().session(first.session).output("a", "x").await.unwrap();
    assert_eq!(second.end.summary().reason.as_deref(), Some("max_turns"));
    assert_eq!(second.usage.requests, 3);
    assert_eq!(second.tool_calls.len(), 2);
}

#[tokio::test]
async fn a_session_put_away_between_two_turns_goes_on() {
    let replies = [calls([("a", "echo", r#"{"text":"x"}"#)]), says("done")];
    let whole = Script::new(replies.clone());
    let kept = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let keep = std::sync::Arc::clone(&kept);
    let outcome = Run::new(whole)
        .tools([echo()])
        .user("go")
        .on_checkpoint(move |session| {
            keep.lock()
                .unwrap()
                .push(serde_json::to_string(session).unwrap());
        })
        .await
        .unwrap();
    let checkpoints = kept.lock().unwrap().clone();
    assert_eq!(checkpoints.len(), 3);
    for (at, checkpoint) in checkpoints.iter().take(2).enumerate() {
        let session: Session = serde_json::from_str(checkpoint).unwrap();
        let rest = Script::new(replies.iter().skip(at).cloned());
        let resumed = Run::new(rest)
            .tools([echo()])
            .session(session)
            .await
            .unwrap();
        assert_eq!(
            resumed.session.conversation(),
            outcome.session.conversation()
        );
        assert_eq!(resumed.usage, outcome.usage);
        assert_eq!(resumed.rounds, outcome.rounds);
    }
}

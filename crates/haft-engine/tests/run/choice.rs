//! `tool_choice`: what is demanded is checked, and relaxes once a tool ran.

use haft_core::{AllowedMode, AllowedTools, Item, ToolChoice};
use haft_engine::{CallStatus, End, FailedReason, Run};

use crate::script::{Reply, Script, calling, calls, says};
use crate::texts;
use crate::tools::{echo, tool};

fn other() -> std::sync::Arc<dyn haft_core::ToolObject> {
    tool("other", |_| Ok(haft_core::ToolOutput::text("o")))
}

fn run(model: &Script, choice: ToolChoice) -> Run {
    Run::new(model.clone())
        .tools([echo(), other()])
        .tool_choice(choice)
        .user("go")
}

fn sent(model: &Script) -> Vec<ToolChoice> {
    let received = model.received();
    received
        .into_iter()
        .map(|request| request.tool_choice.unwrap())
        .collect()
}

#[tokio::test]
async fn a_forced_function_and_required_relax_after_the_first_round_in_which_a_tool_ran() {
    for choice in [ToolChoice::Required, ToolChoice::Function("echo".into())] {
        let model = Script::new([
            calls([("a", "echo", "oops")]),
            calls([("b", "echo", "{}")]),
            says("done"),
        ]);
        let outcome = run(&model, choice.clone()).await.unwrap();
        assert!(outcome.is_completed());
        // The first call was refused: nothing ran, so the demand stands.
        assert_eq!(sent(&model), [choice.clone(), choice, ToolChoice::Auto]);
    }
}

#[tokio::test]
async fn an_answer_without_the_demanded_call_is_asked_for_once_more() {
    let model = Script::new([says("no"), calls([("a", "echo", "{}")]), says("done")]);
    let outcome = run(&model, ToolChoice::Required).await.unwrap();
    assert!(outcome.is_completed());
    let retry = model.received()[1].clone();
    assert_eq!(
        retry.instructions.as_deref(),
        Some("Call one of the tools now.")
    );
    assert_eq!(retry.conversation.len(), 1);
    // Neither the broken answer nor the reminder is kept.
    assert_eq!(outcome.session.items().len(), 4);
}

#[tokio::test]
async fn a_model_that_never_calls_what_is_demanded_fails_the_run() {
    let model = Script::new([says("no"), says("still no")]);
    let outcome = run(&model, ToolChoice::Required).await.unwrap();
    let End::Failed { reason, .. } = outcome.end else {
        panic!("{:?}", outcome.end)
    };
    assert_eq!(reason, FailedReason::ToolChoiceNotFollowed);
    assert_eq!(outcome.usage.requests, 2);
}

#[tokio::test]
async fn another_call_than_the_forced_one_does_not_do() {
    let model = Script::new([
        calls([("a", "other", "{}")]),
        calls([("b", "echo", "{}")]),
        says("done"),
    ]);
    let outcome = run(&model, ToolChoice::Function("echo".into()))
        .await
        .unwrap();
    assert!(outcome.is_completed());
    assert_eq!(outcome.tool_calls.len(), 1);
    assert_eq!(outcome.tool_calls[0].call_id, "b");
}

#[tokio::test]
async fn none_persists_and_calls_in_spite_of_it_are_discarded() {
    let mut both = calling([("a", "echo", "{}")]);
    both.items.insert(0, Item::assistant("fine"));
    let model = Script::new([Reply::Answer(both)]);
    let outcome = run(&model, ToolChoice::None).await.unwrap();
    assert!(outcome.is_completed());
    assert_eq!(outcome.text, "fine");
    assert!(outcome.tool_calls.is_empty());

    let model = Script::new([calls([("a", "echo", "{}")]), says("in words")]);
    let outcome = run(&model, ToolChoice::None).await.unwrap();
    assert_eq!(outcome.text, "in words");
    assert_eq!(sent(&model), [ToolChoice::None, ToolChoice::None]);

    let model = Script::new([calls([("a", "echo", "{}")]), calls([("b", "echo", "{}")])]);
    let outcome = run(&model, ToolChoice::None).await.unwrap();
    assert_eq!(
        outcome.end.summary().reason.as_deref(),
        Some("tool_choice_not_followed")
    );
}

#[tokio::test]
async fn a_call_outside_the_allowed_tools_is_answered_and_never_runs() {
    let model = Script::new([
        calls([("a", "other", "{}"), ("b", "echo", r#"{"text":"x"}"#)]),
        says("done"),
    ]);
    let outcome = run(&model, ToolChoice::allowed(["echo"])).await.unwrap();
    assert_eq!(
        texts(&outcome),
        [
            "Tool 'other' is not allowed in this request. Allowed tools: echo.",
            "x"
        ]
    );
    assert_eq!(outcome.tool_calls[0].status, CallStatus::Unknown);
    // The list stays as it is, and so does the subset.
    assert!(
        model
            .received()
            .iter()
            .all(|request| request.tools.len() == 2)
    );
    assert_eq!(sent(&model)[1], ToolChoice::allowed(["echo"]));
}

#[tokio::test]
async fn after_two_rounds_of_forbidden_calls_the_tools_are_withdrawn() {
    let model = Script::new([
        calls([("a", "other", "{}")]),
        calls([("b", "other", "{}")]),
        says("then without"),
    ]);
    let outcome = run(&model, ToolChoice::allowed(["echo"])).await.unwrap();
    assert!(outcome.is_completed());
    assert_eq!(outcome.text, "then without");
    assert_eq!(sent(&model)[2], ToolChoice::None);
}

#[tokio::test]
async fn allowed_and_required_demands_a_call() {
    let choice = ToolChoice::Allowed(AllowedTools {
        mode: AllowedMode::Required,
        names: vec!["echo".into()],
    });
    let model = Script::new([says("no"), calls([("a", "echo", "{}")]), says("done")]);
    let outcome = run(&model, choice).await.unwrap();
    assert!(outcome.is_completed());
    assert_eq!(sent(&model)[2], ToolChoice::allowed(["echo"]));
}

#[tokio::test]
async fn no_choice_is_sent_where_no_tools_are_offered() {
    let model = Script::new([says("hi")]);
    let _ = Run::new(model.clone()).user("go").await.unwrap();
    assert_eq!(model.received()[0].tool_choice, None);
}

#[tokio::test]
async fn a_choice_of_a_tool_that_is_not_offered_is_refused_at_the_start() {
    let refused = run(&Script::new([]), ToolChoice::Function("zz".into())).await;
    assert!(refused.unwrap_err().to_string().contains("`zz`"));
}

#[tokio::test]
async fn a_first_choice_holds_until_a_tool_has_run() {
    let model = Script::new([
        calls([("a", "echo", r#"{"text":"1"}"#)]),
        calls([("b", "other", r#"{"text":"2"}"#)]),
        says("done"),
    ]);
    let first = ToolChoice::Allowed(AllowedTools {
        mode: AllowedMode::Required,
        names: vec!["echo".into()],
    });
    let outcome = Run::new(model.clone())
        .tools([echo(), other()])
        .first_choice(first.clone())
        .user("go")
        .await
        .unwrap();
    assert_eq!(texts(&outcome), ["1", "o"]);
    let choices: Vec<_> = model
        .received()
        .into_iter()
        .map(|it| it.tool_choice)
        .collect();
    assert_eq!(
        choices,
        [Some(first), Some(ToolChoice::Auto), Some(ToolChoice::Auto)]
    );
}

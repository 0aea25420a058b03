//! Answers that the token limit or a filter cut off.

use haft_core::{FinishReason, Item, ModelOptions};
use haft_engine::{End, IncompleteReason, Outcome, Run};

use crate::script::{Reply, Script, calling, cut, says};
use crate::texts;
use crate::tools::{echo, function};

fn reason(outcome: &Outcome) -> IncompleteReason {
    match &outcome.end {
        End::Incomplete { reason, .. } => *reason,
        other => panic!("{other:?}"),
    }
}

fn run(model: Script) -> Run {
    Run::new(model).tools([echo(), function("ask")]).user("go")
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_refused_and_the_run_goes_on() {
    let answer = calling([
        ("a", "echo", r#"{"text":"whole"}"#),
        ("b", "echo", r#"{"text":"cut o"#),
    ]);
    let outcome = run(Script::new([cut(answer), says("done")])).await.unwrap();
    assert!(outcome.is_completed());
    assert_eq!(
        texts(&outcome),
        [
            "whole",
            "Tool 'echo': the arguments were cut off. Send the call again."
        ]
    );
}

#[tokio::test]
async fn a_cut_that_fell_into_text_ends_the_run_and_runs_nothing() {
    let mut answer = calling([("a", "echo", "{}")]);
    answer.items.push(Item::assistant("and then"));
    let outcome = run(Script::new([cut(answer)])).await.unwrap();
    assert_eq!(reason(&outcome), IncompleteReason::MaxOutputTokens);
    assert_eq!(texts(&outcome), ["Not executed: output limit reached."]);
    assert_eq!(outcome.text, "and then");
}

#[tokio::test]
async fn a_cut_in_a_call_for_the_caller_ends_the_run_and_runs_nothing() {
    let answer = calling([("a", "echo", "{}"), ("b", "ask", r#"{"text":"cut"#)]);
    let outcome = run(Script::new([cut(answer)])).await.unwrap();
    assert_eq!(reason(&outcome), IncompleteReason::MaxOutputTokens);
    assert_eq!(texts(&outcome), ["Not executed: output limit reached."; 2]);
}

#[tokio::test]
async fn without_room_for_another_answer_a_cut_call_ends_the_run() {
    let answer = calling([("a", "echo", r#"{"text":"cu"#)]).with_usage(5, 100);
    let options = ModelOptions {
        max_output_tokens: Some(100),
        ..ModelOptions::default()
    };
    let outcome = run(Script::new([cut(answer)]))
        .model_options(options)
        .await
        .unwrap();
    assert_eq!(reason(&outcome), IncompleteReason::MaxOutputTokens);
}

#[tokio::test]
async fn a_filtered_answer_ends_the_run_and_runs_nothing() {
    let mut answer = calling([("a", "echo", "{}")]);
    answer.finish = FinishReason::ContentFilter;
    let outcome = run(Script::new([Reply::Answer(answer)])).await.unwrap();
    assert_eq!(reason(&outcome), IncompleteReason::ContentFilter);
    assert_eq!(texts(&outcome), ["Not executed: content filter."]);
    assert!(outcome.session.conversation().verify().is_ok());
}

#[tokio::test]
async fn a_call_that_was_cut_before_its_arguments_began_is_not_a_call_without_any() {
    let mut marked = calling([("a", "echo", ""), ("b", "echo", "{}")]);
    if let Item::FunctionCall(call) = &mut marked.items[0] {
        call.status = Some(haft_core::ItemStatus::Incomplete);
    }
    for (answer, cut_at) in [(calling([("a", "echo", "")]), 0), (marked, 0)] {
        let outcome = run(Script::new([cut(answer), says("done")])).await.unwrap();
        assert_eq!(
            texts(&outcome)[cut_at],
            "Tool 'echo': the arguments were cut off. Send the call again."
        );
    }
}

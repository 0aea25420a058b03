//! Every limit ends a run with its own name.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft_core::{Cancel, Item, ModelOptions, ToolChoice, ToolOutput};
use haft_engine::{
    End, IncompleteReason, LoopDetection, LoopOptions, Outcome, Run, RunError, RunPhase,
};

use crate::script::{Reply, Script, calling, calls, says, says_for};
use crate::tools::{echo, sleeper, tool};
use crate::{outputs, texts};

fn incomplete(outcome: &Outcome) -> (IncompleteReason, &str) {
    match &outcome.end {
        End::Incomplete {
            reason, message, ..
        } => (*reason, message),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn at_the_round_limit_the_model_gets_one_last_turn_without_tools() {
    let model = Script::new([
        calls([("a", "echo", r#"{"text":"1"}"#)]),
        calls([("b", "echo", r#"{"text":"2"}"#)]),
        calls([("c", "echo", r#"{"text":"3"}"#)]),
        says("as far as I got"),
    ]);
    let outcome = Run::new(model.clone())
        .tools([echo()])
        .max_rounds(2)
        .user("go")
        .await
        .unwrap();
    assert_eq!(incomplete(&outcome).0, IncompleteReason::MaxTurns);
    assert_eq!(outcome.text, "as far as I got");
    assert_eq!(outcome.rounds, 2);
    assert_eq!(texts(&outcome)[2], "Not executed: round limit reached.");
    let last = &model.received()[3];
    assert_eq!(last.tool_choice, Some(ToolChoice::None));
    assert_eq!(last.tools.len(), 1);
}

/// R13
#[tokio::test]
async fn the_default_is_ten_rounds() {
    let mut replies: Vec<_> = (0..11)
        .map(|n| calls([("", "echo", &format!(r#"{{"text":"{n}"}}"#))]))
        .collect();
    replies.push(says("enough"));
    let model = Script::new(replies);
    let outcome = Run::new(model.clone())
        .tools([echo()])
        .user("go")
        .await
        .unwrap();
    assert_eq!(incomplete(&outcome).0, IncompleteReason::MaxTurns);
    assert_eq!(outcome.rounds, 10);
    assert_eq!(model.left(), 0);
}

#[tokio::test]
async fn without_a_final_turn_the_run_ends_at_the_limit() {
    let model = Script::new([calls([("a", "echo", "{}")]), calls([("b", "echo", "{}")])]);
    let options = LoopOptions {
        max_rounds: 1,
        final_turn: false,
        ..LoopOptions::default()
    };
    let outcome = Run::new(model)
        .tools([echo()])
        .options(options)
        .user("go")
        .await
        .unwrap();
    assert_eq!(incomplete(&outcome).0, IncompleteReason::MaxTurns);
    assert_eq!(outputs(&outcome.items).len(), 2);
}

#[tokio::test]
async fn calls_of_the_last_turn_are_not_executed_and_not_kept() {
    let mut last = calling([("c", "echo", "{}")]);
    last.items.insert(0, Item::assistant("bye"));
    let model = Script::new([
        calls([("a", "echo", "{}")]),
        calls([("b", "echo", "{}")]),
        Reply::Answer(last),
    ]);
    let outcome = Run::new(model)
        .tools([echo()])
        .max_rounds(1)
        .user("go")
        .await
        .unwrap();
    assert_eq!(outcome.text, "bye");
    assert_eq!(outcome.tool_calls.len(), 2);
    assert!(outcome.session.conversation().verify().is_ok());
}

#[tokio::test]
async fn the_call_limit_counts_calls_and_not_rounds() {
    let model = Script::new([
        calls([
            ("a", "echo", r#"{"text":"1"}"#),
            ("b", "echo", r#"{"text":"2"}"#),
            ("c", "echo", r#"{"text":"3"}"#),
        ]),
        says("two of three"),
    ]);
    let outcome = Run::new(model)
        .tools([echo()])
        .max_tool_calls(2)
        .user("go")
        .await
        .unwrap();
    assert_eq!(
        incomplete(&outcome),
        (
            IncompleteReason::MaxToolCalls,
            "Budget exceeded: tool_calls 3 > 2"
        )
    );
    assert_eq!(
        texts(&outcome),
        ["1", "2", "Not executed: call limit reached."]
    );
    assert_eq!(outcome.text, "two of three");
}

#[tokio::test]
async fn calls_that_never_ran_do_not_count_for_the_limit() {
    let model = Script::new([
        calls([("a", "nothing", "{}"), ("b", "echo", "{}")]),
        says("done"),
    ]);
    let outcome = Run::new(model)
        .tools([echo()])
        .max_tool_calls(1)
        .user("go")
        .await
        .unwrap();
    assert!(outcome.is_completed());
}

/// R8
#[tokio::test]
async fn a_token_budget_is_summed_over_all_answers() {
    let costly = |id: &str| Reply::Answer(calling([(id, "echo", "{}")]).with_usage(10, 5));
    let model = Script::new([costly("a"), costly("b"), costly("c")]);
    let outcome = Run::new(model.clone())
        .tools([echo()])
        .max_total_tokens(25)
        .user("go")
        .await
        .unwrap();
    assert_eq!(
        incomplete(&outcome),
        (
            IncompleteReason::Budget,
            "Budget exceeded: total_tokens 30 > 25"
        )
    );
    assert_eq!(model.received().len(), 2);
    assert_eq!(texts(&outcome), ["", "Not executed: budget exceeded."]);
}

#[tokio::test]
async fn a_budget_that_is_just_reached_is_not_exceeded() {
    let model = Script::new([says_for("done", 20, 5)]);
    let outcome = Run::new(model).max_total_tokens(25).user("go").await;
    assert!(outcome.unwrap().is_completed());
}

#[tokio::test]
async fn input_is_checked_before_output_and_total() {
    let options = LoopOptions {
        max_input_tokens: Some(1),
        max_output_tokens: Some(1),
        max_total_tokens: Some(1),
        ..LoopOptions::default()
    };
    let model = Script::new([says_for("x", 5, 5)]);
    let outcome = Run::new(model).options(options).user("go").await.unwrap();
    assert_eq!(
        incomplete(&outcome).1,
        "Budget exceeded: input_tokens 5 > 1"
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_too_long_is_given_up() {
    let model = Script::new([
        calls([
            ("a", "sleep", r#"{"text":"60000"}"#),
            ("b", "echo", r#"{"text":"ok"}"#),
        ]),
        says("done"),
    ]);
    let outcome = Run::new(model)
        .tools([sleeper("sleep"), echo()])
        .user("go")
        .await
        .unwrap();
    assert_eq!(texts(&outcome), ["Tool 'sleep' timed out after 30s.", "ok"]);
    assert!(outcome.is_completed());
}

#[tokio::test]
async fn the_deadline_inside_a_tool_ends_the_run() {
    let model = Script::new([calls([
        ("a", "sleep", r#"{"text":"60000"}"#),
        ("b", "echo", r#"{"text":"ok"}"#),
    ])]);
    let outcome = Run::new(model)
        .tools([sleeper("sleep"), echo()])
        .time_limit(Duration::from_millis(1100))
        .user("go")
        .await
        .unwrap();
    let End::Incomplete { reason, phase, .. } = &outcome.end else {
        panic!("{:?}", outcome.end)
    };
    assert_eq!(
        (*reason, *phase),
        (IncompleteReason::TimeLimit, RunPhase::Tool)
    );
    assert!(texts(&outcome)[0].starts_with("Tool 'sleep' timed out after 1"));
    assert_eq!(texts(&outcome)[1], "ok");
    assert!(outcome.session.conversation().verify().is_ok());
}

/// R12: a handler that nothing can stop has used up the time of the one behind it.
#[tokio::test]
async fn no_handler_begins_behind_the_deadline() {
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let counting = tool("count", move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(ToolOutput::empty())
    });
    let stubborn = tool("stubborn", |_| {
        std::thread::sleep(Duration::from_millis(1200));
        Ok(ToolOutput::text("at last"))
    });
    let model = Script::new([calls([("a", "stubborn", "{}"), ("b", "count", "{}")])]);
    let outcome = Run::new(model)
        .tools([stubborn, counting])
        .max_parallel(1)
        .time_limit(Duration::from_millis(1050))
        .user("go")
        .await
        .unwrap();
    assert_eq!(incomplete(&outcome).0, IncompleteReason::TimeLimit);
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert_eq!(texts(&outcome)[1], "Not executed: deadline exceeded.");
}

#[tokio::test]
async fn the_deadline_ends_a_request_that_hangs() {
    let outcome = Run::new(Script::new([Reply::Hangs]))
        .time_limit(Duration::from_secs(1))
        .user("go")
        .await
        .unwrap();
    let End::Incomplete { reason, phase, .. } = outcome.end else {
        panic!("{:?}", outcome.end)
    };
    assert_eq!(
        (reason, phase),
        (IncompleteReason::TimeLimit, RunPhase::Request)
    );
}

#[tokio::test]
async fn a_deadline_that_is_too_close_and_limits_of_zero_are_refused() {
    let run = || Run::new(Script::new([])).user("go");
    let refused = run().time_limit(Duration::from_millis(200)).await;
    assert!(matches!(refused, Err(RunError::DeadlineTooClose)));
    let refused = run().max_total_tokens(0).await;
    assert!(matches!(
        refused,
        Err(RunError::ZeroLimit {
            name: "max_total_tokens"
        })
    ));
}

#[tokio::test]
async fn what_is_left_of_the_output_limit_goes_with_each_request() {
    let first = Reply::Answer(calling([("a", "echo", "{}")]).with_usage(10, 60));
    let model = Script::new([first, says("done")]);
    let options = ModelOptions {
        max_output_tokens: Some(100),
        ..ModelOptions::default()
    };
    let _ = Run::new(model.clone())
        .tools([echo()])
        .model_options(options)
        .user("go")
        .await
        .unwrap();
    let sent: Vec<_> = model
        .received()
        .iter()
        .map(|request| request.options.max_output_tokens)
        .collect();
    assert_eq!(sent, [Some(100), Some(40)]);
}

#[tokio::test]
async fn a_rest_that_no_provider_takes_is_the_end_at_the_output_limit() {
    let first = Reply::Answer(calling([("a", "echo", "{}")]).with_usage(10, 90));
    let model = Script::new([first]);
    let options = ModelOptions {
        max_output_tokens: Some(100),
        ..ModelOptions::default()
    };
    let outcome = Run::new(model.clone())
        .tools([echo()])
        .model_options(options)
        .user("go")
        .await
        .unwrap();
    let End::Incomplete { reason, .. } = outcome.end else {
        panic!("{:?}", outcome.end);
    };
    assert_eq!(reason, IncompleteReason::MaxOutputTokens);
    assert_eq!(model.received().len(), 1);
}

#[tokio::test]
async fn a_cancel_before_the_start_sends_nothing_more() {
    let cancel = Cancel::new();
    cancel.cancel();
    let outcome = Run::new(Script::new([Reply::Hangs]))
        .cancel(cancel)
        .user("go")
        .await
        .unwrap();
    assert!(matches!(outcome.end, End::Cancelled));
}

#[tokio::test]
async fn a_cancel_stops_a_running_tool_and_leaves_a_whole_history() {
    let cancel = Cancel::new();
    let model = Script::new([calls([
        ("a", "sleep", r#"{"text":"600000"}"#),
        ("b", "sequential", r#"{"text":"x"}"#),
    ])]);
    let sequential = crate::tools::annotated(
        "sequential",
        haft_core::Annotations {
            sequential: true,
            ..haft_core::Annotations::default()
        },
        |_| unreachable!("it waits for the first"),
    );
    let mut run = Run::new(model)
        .tools([sleeper("sleep"), sequential])
        .cancel(cancel.clone())
        .user("go")
        .start()
        .unwrap();
    while let Some(event) = run.next().await {
        if let haft_engine::EventKind::ToolStarted { .. } = event.kind {
            cancel.cancel();
        }
    }
    let outcome = run.finish().await;
    assert!(matches!(outcome.end, End::Cancelled));
    assert_eq!(
        texts(&outcome),
        [
            "Tool 'sleep' was stopped while it ran: the run was cancelled. Whether it took effect is unknown: \
             check before you call it again.",
            "Not executed: cancelled."
        ]
    );
    assert!(outcome.session.conversation().verify().is_ok());
}

#[tokio::test]
async fn loop_detection_can_be_switched_off() {
    let mut replies: Vec<_> = (0..9).map(|_| calls([("", "echo", "{}")])).collect();
    replies.push(says("done"));
    let outcome = Run::new(Script::new(replies))
        .tools([echo()])
        .loop_detection(LoopDetection::off())
        .user("go")
        .await
        .unwrap();
    assert!(outcome.is_completed());
}

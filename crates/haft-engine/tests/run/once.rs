//! The short way gives a plain answer as a run would, and leaves everything else to a run, which then ends
//! as if it had asked by itself.

use std::sync::Arc;
use std::time::Duration;

use haft_core::{
    Cancel, ContentPart, Conversation, FinishReason, Item, Message, Model, ModelError,
    ModelErrorKind, ModelRequest, ModelResponse, Reasoning, Role,
};
use haft_engine::{Asked, Backoff, LoopOptions, Outcome, Run, ask_once, may_ask_once};

use crate::script::{Reply, Script, calls, cut, says, says_for};

const TIMEOUT: Duration = Duration::from_mins(20);

fn asked_with() -> Conversation {
    vec![Item::user("go")].into()
}

async fn ask(script: &Script, cancel: &Cancel) -> Asked {
    let model: Arc<dyn Model> = Arc::new(script.clone());
    let request = ModelRequest {
        conversation: asked_with(),
        ..ModelRequest::default()
    };
    ask_once(&model, request, TIMEOUT, cancel).await
}

async fn run(model: impl Model) -> Outcome {
    let retry = Backoff {
        attempts: 3,
        ..Backoff::default()
    };
    let options = LoopOptions {
        retry,
        ..LoopOptions::default()
    };
    let run = Run::new(model).options(options).input([Item::user("go")]);
    run.await.unwrap()
}

fn overloaded() -> ModelError {
    ModelError::new(ModelErrorKind::ServerError, "overloaded").with_status(503)
}

fn refusal() -> Item {
    let mut message = Message::new(Role::Assistant, "");
    message.content = vec![ContentPart::Refusal {
        refusal: "no".into(),
    }];
    Item::Message(message)
}

fn ended(finish: FinishReason) -> Reply {
    let mut response = ModelResponse::text("half");
    response.finish = finish;
    Reply::Answer(response)
}

#[tokio::test]
async fn a_plain_answer_is_the_one_that_a_run_ends_with() {
    let thinking = Item::Reasoning(Reasoning {
        summary: vec![ContentPart::SummaryText { text: "hm".into() }],
        ..Reasoning::default()
    });
    for reply in [
        says("hello"),
        says_for("hello", 7, 3),
        Reply::Answer(ModelResponse::of([
            thinking,
            Item::assistant("a"),
            Item::assistant("b"),
        ])),
    ] {
        let script = Script::new([reply.clone()]);
        let Asked::Answered(response) = ask(&script, &Cancel::new()).await else {
            panic!("it is an answer")
        };
        let outcome = run(Script::new([reply])).await;
        assert!(outcome.is_completed());
        assert_eq!(outcome.items, response.items);
        let usage = response.usage.unwrap_or_default();
        assert_eq!(outcome.usage.input_tokens, usage.input_tokens);
        assert_eq!(script.left(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_else_comes_is_judged_by_a_run_as_if_it_had_asked() {
    let long = || ModelResponse::text("a long answer");
    let cases: Vec<Vec<Reply>> = vec![
        vec![Reply::Fails(overloaded()), says("second")],
        vec![Reply::Fails(overloaded()); 3],
        vec![Reply::BreaksOff(long(), 0, overloaded()), says("second")],
        vec![Reply::BreaksOff(long(), 3, overloaded())],
        vec![
            calls([("c1", "nowhere", "{}")]),
            says("there is no such tool"),
        ],
        vec![cut(long())],
        vec![ended(FinishReason::ContentFilter)],
        vec![ended(FinishReason::Error)],
        vec![Reply::Answer(ModelResponse::of([refusal()]))],
        vec![Reply::Answer(ModelResponse::of([Item::assistant("")]))],
        vec![Reply::Answer(ModelResponse::of([Item::user("I am you")]))],
        vec![Reply::Answer(ModelResponse::of([]))],
        vec![Reply::Hangs, says("second")],
    ];
    for (number, replies) in cases.into_iter().enumerate() {
        let script = Script::new(replies.clone());
        let Asked::Otherwise(model) = ask(&script, &Cancel::new()).await else {
            panic!("case {number} is no plain answer")
        };
        let (short, long) = (run(model).await, run(Script::new(replies)).await);
        assert_eq!(
            format!("{:?}", short.end),
            format!("{:?}", long.end),
            "case {number}"
        );
        assert_eq!(short.items, long.items, "case {number}");
        assert_eq!(short.usage, long.usage, "case {number}");
        assert_eq!(script.left(), 0, "case {number}");
    }
}

#[tokio::test]
async fn nothing_is_sent_again_after_the_signal() {
    let cancel = Cancel::new();
    cancel.cancel();
    let script = Script::new([says("never asked")]);
    let Asked::Otherwise(model) = ask(&script, &cancel).await else {
        panic!("nobody was asked")
    };
    let outcome = Run::new(model).user("go").cancel(cancel).await.unwrap();
    assert_eq!(outcome.end.name(), "cancelled");
    assert!(script.received().is_empty());
}

#[test]
fn what_could_be_more_than_one_answer_is_not_asked_once() {
    let options = LoopOptions::default();
    assert!(may_ask_once(&options, &asked_with()));
    assert!(!may_ask_once(&options, &Conversation::default()));
    let called: Conversation = vec![Item::function_call("c1", "t", "{}")].into();
    assert!(!may_ask_once(&options, &called));
    let bounded = LoopOptions {
        deadline: Some(Duration::from_secs(9)),
        ..LoopOptions::default()
    };
    assert!(!may_ask_once(&bounded, &asked_with()));
}

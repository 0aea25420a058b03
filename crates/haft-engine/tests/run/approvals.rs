//! Calls that need somebody's word.

use std::time::Duration;

use haft_core::{
    Annotations, ApprovalRequest, Approver, BoxFuture, Decision, Item, SuspendAlways, TrustPolicy,
};
use haft_engine::{CallStatus, End, LoopOptions, Run, Session};

use crate::script::{Script, calls, says};
use crate::texts;
use crate::tools::{annotated, echo};

fn destructive() -> std::sync::Arc<dyn haft_core::ToolObject> {
    let annotations = Annotations {
        destructive: true,
        ..Annotations::default()
    };
    annotated("wipe", annotations, |text| {
        Ok(haft_core::ToolOutput::text(format!("wiped {text}")))
    })
}

fn run(model: &Script) -> Run {
    Run::new(model.clone())
        .tools([destructive(), echo()])
        .trust(TrustPolicy {
            approve_destructive: true,
            ..TrustPolicy::default()
        })
}

fn script() -> Script {
    Script::new([
        calls([
            ("a", "wipe", r#"{"text":"disk"}"#),
            ("b", "echo", r#"{"text":"free"}"#),
        ]),
        says("done"),
    ])
}

#[tokio::test]
async fn an_allowed_call_runs_with_exactly_the_arguments_that_were_shown() {
    let outcome = run(&script())
        .approver(|request: &ApprovalRequest| {
            assert_eq!(request.arguments, serde_json::json!({"text": "disk"}));
            assert_eq!(request.reason, "the tool is destructive");
            Decision::Allow
        })
        .user("go")
        .await
        .unwrap();
    assert_eq!(texts(&outcome), ["wiped disk", "free"]);
    assert_eq!(outcome.tool_calls[0].verdict.as_deref(), Some("approved"));
}

#[tokio::test]
async fn a_denied_call_does_not_run_and_the_model_reads_the_reason() {
    let outcome = run(&script())
        .approver(|_: &ApprovalRequest| Decision::Deny(Some("not on a Sunday".into())))
        .user("go")
        .await
        .unwrap();
    assert_eq!(
        texts(&outcome),
        [
            "Tool 'wipe' needs approval and was not approved. Reason: not on a Sunday",
            "free"
        ]
    );
    assert_eq!(outcome.tool_calls[0].status, CallStatus::NotApproved);
}

#[tokio::test]
async fn without_approver_nothing_is_approved() {
    let outcome = run(&script()).user("go").await.unwrap();
    assert_eq!(
        texts(&outcome)[0],
        "Tool 'wipe' needs approval and was not approved."
    );
}

struct Sleeps;

impl Approver for Sleeps {
    fn ask(&self, _: ApprovalRequest) -> BoxFuture<'_, Decision> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_hours(1)).await;
            Decision::Allow
        })
    }
}

#[tokio::test]
async fn an_answer_that_takes_too_long_is_no_approval() {
    let options = LoopOptions {
        approval_timeout: Duration::from_millis(30),
        ..LoopOptions::default()
    };
    let outcome = run(&script())
        .approver(Sleeps)
        .options(options)
        .user("go")
        .await
        .unwrap();
    assert!(texts(&outcome)[0].starts_with("Tool 'wipe' needs approval and was not approved."));
}

#[tokio::test]
async fn a_suspended_call_ends_the_run_as_waiting_and_runs_when_allowed() {
    let model = script();
    let first = run(&model)
        .approver(SuspendAlways)
        .user("go")
        .await
        .unwrap();
    let End::Waiting(waiting) = &first.end else {
        panic!("{:?}", first.end)
    };
    assert_eq!(waiting.approvals[0].call_id, "a");
    assert!(waiting.calls.is_empty());
    assert_eq!(texts(&first), ["free"]);

    let session: Session =
        serde_json::from_str(&serde_json::to_string(&first.session).unwrap()).unwrap();
    assert_eq!(session.suspended_calls().collect::<Vec<_>>(), ["a"]);
    let second = run(&model).session(session).approve("a").await.unwrap();
    assert!(second.is_completed());
    assert_eq!(texts(&second), ["wiped disk", "free"]);
    assert!(second.session.conversation().verify().is_ok());
}

#[tokio::test]
async fn a_suspended_call_may_be_refused_later() {
    let model = script();
    let first = run(&model)
        .approver(SuspendAlways)
        .user("go")
        .await
        .unwrap();
    let second = run(&model)
        .session(first.session)
        .deny("a", "no")
        .await
        .unwrap();
    assert_eq!(
        texts(&second)[0],
        "Tool 'wipe' needs approval and was not approved. Reason: no"
    );
}

#[tokio::test]
async fn a_suspended_call_cannot_be_answered_by_an_output() {
    let model = script();
    let first = run(&model)
        .approver(SuspendAlways)
        .user("go")
        .await
        .unwrap();
    let refused = run(&model).session(first.session).output("a", "x").await;
    assert!(refused.is_err());
}

#[tokio::test]
async fn calls_behind_a_suspended_barrier_are_held_back_until_the_answer() {
    let annotations = Annotations {
        destructive: true,
        sequential: true,
        ..Annotations::default()
    };
    let model = script();
    let run = || {
        let wipe = annotated("wipe", annotations.clone(), |_| {
            Ok(haft_core::ToolOutput::text("wiped"))
        });
        Run::new(model.clone())
            .tools([wipe, echo()])
            .trust(TrustPolicy {
                approve_destructive: true,
                ..TrustPolicy::default()
            })
    };
    let first = run().approver(SuspendAlways).user("go").await.unwrap();
    assert!(texts(&first).is_empty());
    let second = run().session(first.session).approve("a").await.unwrap();
    assert_eq!(texts(&second), ["wiped", "free"]);
}

#[tokio::test]
async fn a_tool_may_ask_for_approval_by_itself() {
    let annotations = || Annotations {
        extra: ["x-needs-approval", "x-shell"]
            .map(|key| (key.to_owned(), true.into()))
            .into_iter()
            .collect(),
        ..Annotations::default()
    };
    let shell = || {
        annotated("shell", annotations(), |_| {
            Ok(haft_core::ToolOutput::text("ran"))
        })
    };
    let script = || Script::new([calls([("a", "shell", "{}")]), says("done")]);
    let asked = Run::new(script())
        .tools([shell()])
        .user("go")
        .await
        .unwrap();
    assert_eq!(asked.tool_calls[0].status, CallStatus::NotApproved);
    let unasked = Run::new(script())
        .tools([shell()])
        .allow_shell_unasked()
        .user("go")
        .await
        .unwrap();
    assert_eq!(texts(&unasked), ["ran"]);
}

#[tokio::test]
async fn a_repaired_call_is_gated_and_marked() {
    let script = || Script::new([calls([("a", "wipe", r#"{"text":"x",}"#)]), says("done")]);
    let gated = Run::new(script())
        .tools([destructive()])
        .repair()
        .user("go")
        .await
        .unwrap();
    assert_eq!(gated.tool_calls[0].status, CallStatus::NotApproved);
    assert!(gated.tool_calls[0].provenance.repaired);
    let allowed = Run::new(script())
        .tools([destructive()])
        .repair()
        .approver(|_: &ApprovalRequest| Decision::Allow)
        .user("go")
        .await
        .unwrap();
    assert_eq!(texts(&allowed), ["wiped x"]);
}

/// A conversation that ended with a call which somebody was asked about.
fn asked_about() -> Session {
    Session::from(vec![
        Item::user("go"),
        Item::function_call("a", "wipe", r#"{"text":"disk"}"#),
        Item::function_call("b", "echo", r#"{"text":"free"}"#),
        Item::FunctionCallOutput(haft_core::FunctionCallOutput::new("b", "free")),
    ])
}

#[tokio::test]
async fn an_allowed_call_of_a_conversation_runs_before_the_model_is_asked() {
    let model = Script::new([says("done")]);
    let outcome = run(&model)
        .session(asked_about())
        .carry_out("a")
        .user("and then?")
        // What the model may do next says nothing about what somebody has allowed.
        .tool_choice(haft_core::ToolChoice::None)
        .await
        .unwrap();
    assert!(outcome.is_completed());
    let sent = model.received().remove(0).conversation;
    let behind: Vec<_> = sent.items().skip(4).collect();
    assert!(
        matches!(behind[0], Item::FunctionCallOutput(output)
            if output.call_id == "a" && output.output.to_text() == "wiped disk"),
        "{behind:?}"
    );
    assert_eq!(behind[1].text(), "and then?");
    assert_eq!(outcome.tool_calls[0].verdict.as_deref(), Some("approved"));
    assert_eq!(outcome.rounds, 1);
}

#[tokio::test]
async fn an_allowed_call_counts_for_the_limit_and_its_arguments_are_checked() {
    let model = Script::new([says("done")]);
    let mut session = asked_about();
    session = Session::from(
        session
            .items()
            .cloned()
            .chain([
                Item::function_call("c", "wipe", r#"{"text":7}"#),
                Item::function_call("d", "wipe", r#"{"text":"tape"}"#),
            ])
            .collect::<Vec<_>>(),
    );
    let run = run(&model).session(session).max_tool_calls(1);
    let outcome = run
        .carry_out("a")
        .carry_out("c")
        .carry_out("d")
        .await
        .unwrap();
    let statuses: Vec<_> = outcome.tool_calls.iter().map(|call| call.status).collect();
    let expected = [
        CallStatus::Succeeded,
        CallStatus::Refused,
        CallStatus::NotExecuted,
    ];
    assert_eq!(statuses, expected);
}

#[tokio::test]
async fn only_open_calls_can_be_carried_out_and_all_others_need_their_output() {
    let model = Script::new([]);
    let error = run(&model).session(asked_about()).carry_out("x").await;
    assert!(error.unwrap_err().to_string().contains("`x`"));
    let error = run(&model).session(asked_about()).carry_out("b").await;
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("`b` is answered twice")
    );
    let mut items: Vec<_> = asked_about().items().cloned().collect();
    items.push(Item::function_call("open", "echo", "{}"));
    let error = run(&model).session(items).carry_out("a").await;
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("`open` has no output")
    );
}

#[tokio::test]
async fn what_is_said_behind_a_carried_out_call_survives_the_process() {
    let model = Script::new([says("done")]);
    let first = run(&model)
        .session(asked_about())
        .carry_out("a")
        .user("and then?");
    let mut stream = first.journaled().start().unwrap();
    let kept = loop {
        match stream.next_step().await.unwrap() {
            haft_engine::Step::Journal => break serde_json::to_string(stream.session()).unwrap(),
            _ => continue,
        }
    };
    drop(stream);
    let session: Session = serde_json::from_str(&kept).unwrap();
    let second = run(&model).session(session).await.unwrap();
    assert!(second.is_completed(), "{:?}", second.end);
    let sent = model.received().remove(0).conversation;
    assert_eq!(sent.items().last().unwrap().text(), "and then?");
}

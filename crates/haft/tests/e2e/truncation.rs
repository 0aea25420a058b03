//! Answers that the token limit cut off.

use haft::testing::{ScriptedServer, Step, say};
use haft::{CallStatus, End, FinishReason, IncompleteReason, Item, Outcome, RawArguments, json};

use crate::world::{Case, ask_user, assert_whole, cases, each, tools};

fn cut(name: &str, arguments: &str) -> Step {
    let arguments = RawArguments::Text(arguments.to_owned());
    Step::default()
        .call(name, arguments)
        .finish(FinishReason::Length)
}

async fn run(case: Case, server: &ScriptedServer) -> Outcome {
    let outcome = case
        .run(server)
        .tools(tools())
        .tools([ask_user()])
        .user("go")
        .await;
    let outcome = outcome.unwrap();
    assert_whole(&outcome);
    outcome
}

fn is_cut_off(outcome: &Outcome) -> bool {
    let End::Incomplete { reason, .. } = &outcome.end else {
        return false;
    };
    *reason == IncompleteReason::MaxOutputTokens
}

#[tokio::test]
async fn a_cut_call_of_a_tool_is_answered_so_and_the_run_goes_on() {
    each(cases(), |case| async move {
        let whole_and_cut = cut("get_weather", r#"{"city":"Oslo"}"#).call(
            "note",
            RawArguments::Text(r#"{"text":"milk, eggs, br"#.to_owned()),
        );
        let server = case.server([whole_and_cut, say("done")]).await;
        let outcome = run(case, &server).await;
        assert!(outcome.is_completed(), "{:?}", outcome.end);
        server.assert_finished();
        let statuses: Vec<_> = outcome.tool_calls.iter().map(|call| call.status).collect();
        assert_eq!(statuses, [CallStatus::Succeeded, CallStatus::Refused]);
        let outputs = server.received()[1].view.latest_outputs().to_vec();
        assert_eq!(outputs[0].text, "rain in Oslo");
        assert_eq!(
            outputs[1].text,
            "Tool 'note': the arguments were cut off. Send the call again."
        );
        assert!(
            format!("{:?}", outcome.tool_calls[1].provenance.original_raw_args)
                .contains("milk, eggs, br")
        );
    })
    .await;
}

#[tokio::test]
async fn a_cut_text_ends_the_run_as_incomplete_with_the_text_kept() {
    each(cases(), |case| async move {
        let server = case
            .server([say("half an ans").finish(FinishReason::Length)])
            .await;
        let outcome = run(case, &server).await;
        assert!(is_cut_off(&outcome), "{:?}", outcome.end);
        assert_eq!(outcome.text, "half an ans");
        assert_eq!(
            outcome.session.items().last().map(Item::text).unwrap(),
            "half an ans"
        );
        server.assert_finished();
    })
    .await;
}

#[tokio::test]
async fn a_cut_call_for_the_caller_ends_the_run_and_nothing_of_the_turn_runs() {
    each(cases(), |case| async move {
        let both = Step::default()
            .call("note", json!({"text": "x"}))
            .call(
                "ask_user",
                RawArguments::Text(r#"{"question":"wh"#.to_owned()),
            )
            .finish(FinishReason::Length);
        let server = case.server([both, say("later")]).await;
        let outcome = run(case, &server).await;
        assert!(is_cut_off(&outcome), "{:?}", outcome.end);
        let statuses: Vec<_> = outcome.tool_calls.iter().map(|call| call.status).collect();
        assert_eq!(statuses[0], CallStatus::NotExecuted);
        assert_ne!(statuses[1], CallStatus::Pending);

        // The conversation is whole: it can go on.
        let run = case.run(&server).tools(tools()).tools([ask_user()]);
        let next = run.session(outcome.session).user("again").await.unwrap();
        assert_eq!(next.text, "later", "{:?}", next.end);
        server.assert_finished();
    })
    .await;
}

#[tokio::test]
async fn a_content_filter_ends_the_run_and_nothing_runs() {
    each(cases(), |case| async move {
        let step = say("I")
            .call("note", json!({"text": "x"}))
            .finish(FinishReason::ContentFilter);
        let server = case.server([step]).await;
        let outcome = run(case, &server).await;
        if case.provider == crate::world::Provider::Ollama {
            // It has no word for this: what it does not know is a normal end.
            return;
        }
        let End::Incomplete { reason, .. } = &outcome.end else {
            panic!("{:?}", outcome.end)
        };
        assert_eq!(*reason, IncompleteReason::ContentFilter);
        assert_eq!(outcome.tool_calls[0].status, CallStatus::NotExecuted);
    })
    .await;
}

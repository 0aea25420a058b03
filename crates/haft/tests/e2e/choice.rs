//! `tool_choice` in all its forms, as each server can be told it, and what becomes of models that do
//! not follow it.

use haft::models::{CapabilityOverrides, ChatQuirks, ChatServer};
use haft::testing::{ScriptedServer, Step, call, say};
use haft::{
    AllowedMode, AllowedTools, CallStatus, End, EventKind, FailedReason, ForcedChoice, Outcome,
    ToolChoice, Value, engine, json,
};

use crate::world::{Case, Provider, anthropic, assert_whole, cases, chat, each, responses, tools};

const BOTH: [&str; 2] = ["get_weather", "note"];

fn note() -> Step {
    call("note", json!({"text": "x"}))
}

fn run(case: Case, server: &ScriptedServer, choice: ToolChoice) -> engine::Run {
    case.run(server)
        .tools(tools())
        .tool_choice(choice)
        .user("go")
}

/// The tools and the choice on the wire, request by request.
fn told(server: &ScriptedServer) -> Vec<(Vec<String>, Value)> {
    let received = server.received();
    let told = received.iter().map(|request| {
        let choice = request.body.get("tool_choice").cloned();
        (request.view.tools.clone(), choice.unwrap_or_default())
    });
    told.collect()
}

fn offered(names: &[&str], choice: Value) -> (Vec<String>, Value) {
    (
        names.iter().map(|name| (*name).to_owned()).collect(),
        choice,
    )
}

fn auto(provider: Provider) -> Value {
    match provider {
        Provider::Anthropic => json!({"type": "auto"}),
        Provider::Ollama => Value::Null,
        _ => json!("auto"),
    }
}

fn named(provider: Provider, name: &str) -> Value {
    match provider {
        Provider::Anthropic => json!({"type": "tool", "name": name}),
        Provider::Ollama => Value::Null,
        _ => json!({"type": "function", "function": {"name": name}}),
    }
}

fn required(provider: Provider) -> Value {
    match provider {
        Provider::Anthropic => json!({"type": "any"}),
        Provider::Ollama => Value::Null,
        _ => json!("required"),
    }
}

#[tokio::test]
async fn required_is_told_where_it_can_be_and_relaxes() {
    each(cases(), |case| async move {
        let server = case.server([note(), say("done")]).await;
        let outcome = run(case, &server, ToolChoice::Required).await.unwrap();
        assert!(outcome.is_completed(), "{:?}", outcome.end);
        let provider = case.provider;
        let expected = [
            offered(&BOTH, required(provider)),
            offered(&BOTH, auto(provider)),
        ];
        assert_eq!(told(&server), expected);
    })
    .await;
}

#[tokio::test]
async fn a_function_is_forced_by_name_or_by_showing_nothing_else() {
    each(cases(), |case| async move {
        let server = case.server([note(), say("done")]).await;
        let choice = ToolChoice::Function("note".into());
        let outcome = run(case, &server, choice).await.unwrap();
        assert!(outcome.is_completed(), "{:?}", outcome.end);
        let forced = match case.provider {
            Provider::Chat => offered(
                &BOTH,
                json!({"type": "function", "function": {"name": "note"}}),
            ),
            Provider::Responses => offered(&BOTH, json!({"type": "function", "name": "note"})),
            Provider::Anthropic => offered(&BOTH, json!({"type": "tool", "name": "note"})),
            Provider::OtherChat => offered(&["note"], json!("required")),
            Provider::Ollama => offered(&["note"], Value::Null),
        };
        assert_eq!(told(&server), [forced, offered(&BOTH, auto(case.provider))]);
    })
    .await;
}

#[tokio::test]
async fn every_adapter_can_be_told_that_its_server_only_forces_a_lone_tool() {
    let lone = CapabilityOverrides {
        forced_choice: Some(ForcedChoice::OnlyTool),
        ..CapabilityOverrides::default()
    };
    each(cases(), move |case| async move {
        let server = case.server([note(), say("done")]).await;
        let run = match case.provider {
            Provider::Chat => case.run_of(chat(&server).quirks(ChatQuirks {
                server: Some(ChatServer::LlamaCpp),
                ..ChatQuirks::default()
            })),
            Provider::Responses => case.run_of(responses(&server).with_capabilities(lone)),
            Provider::Anthropic => case.run_of(anthropic(&server).with_capabilities(lone)),
            Provider::OtherChat | Provider::Ollama => case.run(&server),
        };
        let choice = ToolChoice::Function("note".into());
        let outcome = run
            .tools(tools())
            .tool_choice(choice)
            .user("go")
            .await
            .unwrap();
        assert!(outcome.is_completed(), "{:?}", outcome.end);
        assert_eq!(
            told(&server)[0],
            offered(&["note"], required(case.provider))
        );
    })
    .await;
}

fn not_followed(outcome: &Outcome) -> bool {
    let End::Failed { reason, .. } = &outcome.end else {
        return false;
    };
    *reason == FailedReason::ToolChoiceNotFollowed
}

#[tokio::test]
async fn a_model_that_does_not_call_is_reminded_once_and_then_it_is_its_fault() {
    each(cases(), |case| async move {
        for choice in [ToolChoice::Required, ToolChoice::Function("note".into())] {
            let server = case.server([say("no"), note(), say("done")]).await;
            let outcome = run(case, &server, choice.clone()).await.unwrap();
            assert_eq!(outcome.text, "done", "{:?}", outcome.end);
            let reminder = match &choice {
                ToolChoice::Function(_) => "Call the tool 'note' now.",
                _ => "Call one of the tools now.",
            };
            let received = server.received();
            assert!(
                received[1].body.to_string().contains(reminder),
                "{:#}",
                received[1].body
            );
            assert!(!received[2].body.to_string().contains(reminder));
            assert!(!received[1].body.to_string().contains("\"no\""));
            assert_whole(&outcome);

            let server = case.server([say("no"), say("still no")]).await;
            let outcome = run(case, &server, choice).await.unwrap();
            assert!(not_followed(&outcome), "{:?}", outcome.end);
            server.assert_finished();
        }
    })
    .await;
}

#[tokio::test]
async fn none_keeps_the_tools_where_it_works_and_takes_them_away_where_not() {
    each(cases(), |case| async move {
        let server = case.server([say("fine")]).await;
        let outcome = run(case, &server, ToolChoice::None).await.unwrap();
        assert_eq!(outcome.text, "fine", "{:?}", outcome.end);
        let expected = match case.provider {
            Provider::Chat | Provider::Responses => offered(&BOTH, json!("none")),
            Provider::Anthropic => offered(&BOTH, json!({"type": "none"})),
            Provider::OtherChat | Provider::Ollama => offered(&[], Value::Null),
        };
        assert_eq!(told(&server), [expected]);

        // A model that calls all the same: nothing runs.
        let server = case.server([note(), note()]).await;
        let outcome = run(case, &server, ToolChoice::None).await.unwrap();
        assert!(not_followed(&outcome), "{:?}", outcome.end);
        assert_eq!(outcome.tool_calls, []);
    })
    .await;
}

#[tokio::test]
async fn an_allowed_subset_leaves_the_list_unchanged_and_other_calls_are_answered() {
    each(cases(), |case| async move {
        for mode in [AllowedMode::Auto, AllowedMode::Required] {
            let script = [
                call("get_weather", json!({"city": "Oslo"})),
                note(),
                say("done"),
            ];
            let server = case.server(script).await;
            let names = vec!["note".to_owned()];
            let choice = ToolChoice::Allowed(AllowedTools { mode, names });
            let outcome = run(case, &server, choice).await.unwrap();
            assert_eq!(outcome.text, "done", "{:?}", outcome.end);
            let received = server.received();
            for request in &received {
                assert_eq!(request.view.tools, BOTH);
                assert_eq!(request.body["tools"], received[0].body["tools"]);
            }
            let statuses: Vec<_> = outcome.tool_calls.iter().map(|call| call.status).collect();
            assert_eq!(statuses, [CallStatus::Unknown, CallStatus::Succeeded]);
            let refused = "Tool 'get_weather' is not allowed in this request. Allowed tools: note.";
            assert_eq!(received[1].view.latest_outputs()[0].text, refused);
            let first = received[0]
                .body
                .get("tool_choice")
                .cloned()
                .unwrap_or_default();
            let demand = match mode {
                // One that must be called is named.
                AllowedMode::Required => named(case.provider, "note"),
                _ => auto(case.provider),
            };
            match case.provider {
                // The only one with a form for it.
                Provider::Responses => {
                    assert_eq!(first["type"], "allowed_tools");
                    assert_eq!(
                        first["tools"],
                        json!([{"type": "function", "name": "note"}])
                    );
                }
                _ => assert_eq!(first, demand),
            }
        }
    })
    .await;
}

#[tokio::test]
async fn after_the_round_limit_the_model_answers_without_tools() {
    each(cases(), |case| async move {
        let server = case.server([note(), note(), say("enough")]).await;
        let run = case.run(&server).tools(tools()).max_rounds(1).user("go");
        let outcome = run.await.unwrap();
        assert!(
            matches!(outcome.end, End::Incomplete { .. }),
            "{:?}",
            outcome.end
        );
        assert_eq!(outcome.text, "enough");
        let last = told(&server).pop().unwrap();
        let expected = match case.provider {
            Provider::Chat | Provider::Responses => offered(&BOTH, json!("none")),
            Provider::Anthropic => offered(&BOTH, json!({"type": "none"})),
            Provider::OtherChat | Provider::Ollama => offered(&[], Value::Null),
        };
        assert_eq!(last, expected);
        assert_whole(&outcome);
    })
    .await;
}

#[tokio::test]
async fn one_call_at_a_time_is_told_where_it_can_be_and_kept_everywhere() {
    each(cases(), |case| async move {
        let two = note().call("note", json!({"text": "y"}));
        let server = case.server([two, say("done")]).await;
        let mut run = case
            .run(&server)
            .tools(tools())
            .parallel_tool_calls(false)
            .user("go")
            .start()
            .unwrap();
        let mut started = 0;
        while let Some(event) = run.next().await {
            started += usize::from(matches!(event.kind, EventKind::ToolStarted { .. }));
        }
        assert_eq!(started, 1);
        let outcome = run.finish().await;
        assert!(outcome.is_completed(), "{:?}", outcome.end);
        let view = &server.received()[0].view;
        let can_be_told = !matches!(case.provider, Provider::OtherChat | Provider::Ollama);
        assert_eq!(view.parallel_tool_calls, can_be_told.then_some(false));
        let outputs = server.received()[1].view.latest_outputs().to_vec();
        assert_eq!(outputs[1].text, "Not executed: one call at a time.");
    })
    .await;
}

//! Runs that wait for the caller: what was left open goes out whole when they go on.

use haft::testing::{ScriptedCall, Step, calls, say};
use haft::{
    CallStatus, End, EventKind, Session, SuspendAlways, ToolRef, TrustPolicy, Value, engine, json,
};

use crate::world::{
    Case, Provider, ask_user, assert_whole, cases, each, get_weather, note, stored,
};

/// Delete everything on a disk.
#[haft::tool(destructive)]
fn wipe(disk: String) -> String {
    format!("wiped {disk}")
}

fn tools() -> Vec<ToolRef> {
    vec![get_weather.into(), note.into(), wipe.into(), ask_user()]
}

fn run(case: Case, server: &haft::testing::ScriptedServer) -> engine::Run {
    case.run(server)
        .tools(tools())
        .approver(SuspendAlways)
        .trust(TrustPolicy {
            approve_destructive: true,
            ..TrustPolicy::default()
        })
}

fn turn(calls_of_it: &[(&str, Value)]) -> Step {
    calls(
        calls_of_it
            .iter()
            .map(|(name, json)| ScriptedCall::new(*name, json.clone())),
    )
}

/// Sees to it that a body has one turn with these calls, all together, and all their outputs
/// directly behind them, in call order.
fn assert_one_turn(provider: Provider, body: &Value, expected: &[(&str, &str)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, output)| ((*name).to_owned(), (*output).to_owned()))
        .collect();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found: Vec<(String, String)> = match provider {
        Provider::Chat | Provider::OtherChat | Provider::Ollama => {
            let messages = body["messages"].as_array().unwrap();
            let has_calls = |message: &Value| message.get("tool_calls").is_some();
            let at = messages.iter().position(has_calls).unwrap();
            assert_eq!(
                messages.iter().filter(|it| has_calls(it)).count(),
                1,
                "{body:#}"
            );
            let calls = messages[at]["tool_calls"].as_array().unwrap();
            let outputs = &messages[at + 1..];
            assert_eq!(outputs.len(), calls.len(), "{body:#}");
            let pairs = calls.iter().zip(outputs);
            let pair = |(call, output): (&Value, &Value)| {
                assert_eq!(output["role"], "tool");
                match provider {
                    Provider::Ollama => assert_eq!(output["tool_name"], call["function"]["name"]),
                    _ => assert_eq!(output["tool_call_id"], call["id"], "{body:#}"),
                }
                (text(&call["function"]["name"]), text(&output["content"]))
            };
            pairs.map(pair).collect()
        }
        Provider::Anthropic => {
            let messages = body["messages"].as_array().unwrap();
            assert_eq!(messages.len(), 3, "{body:#}");
            let calls = messages[1]["content"].as_array().unwrap();
            let outputs = messages[2]["content"].as_array().unwrap();
            assert_eq!(outputs.len(), calls.len(), "{body:#}");
            let pair = |(call, output): (&Value, &Value)| {
                assert_eq!(
                    (&call["type"], &output["type"]),
                    (&json!("tool_use"), &json!("tool_result"))
                );
                assert_eq!(output["tool_use_id"], call["id"], "{body:#}");
                (text(&call["name"]), text(&output["content"]))
            };
            calls.iter().zip(outputs).map(pair).collect()
        }
        Provider::Responses => {
            let items = &body["input"].as_array().unwrap()[1..];
            let (calls, outputs) = items.split_at(items.len() / 2);
            // This API pairs by id, in whatever order.
            let pair = |call: &Value| {
                assert_eq!(call["type"], "function_call", "{body:#}");
                let mut mine = outputs.iter().filter(|it| it["call_id"] == call["call_id"]);
                let output = mine.next().expect("each call has an output");
                assert_eq!(mine.next(), None);
                (text(&call["name"]), text(&output["output"]))
            };
            calls.iter().map(pair).collect()
        }
    };
    assert_eq!(found, expected, "{body:#}");
}

#[tokio::test]
async fn functions_of_the_caller_are_answered_from_another_process() {
    each(cases(), |case| async move {
        let asked = turn(&[
            ("ask_user", json!({"question": "who?"})),
            ("get_weather", json!({"city": "Oslo"})),
            ("ask_user", json!({"question": "why?"})),
            ("ask_user", json!({"question": 5})),
            ("note", json!({"text": "x"})),
        ]);
        let server = case.server([asked, say("done")]).await;
        let first = run(case, &server).user("go").await.unwrap();
        let End::Waiting(waiting) = &first.end else {
            panic!("{:?}", first.end)
        };
        let open: Vec<_> = waiting
            .calls
            .iter()
            .map(|call| call.call_id.clone())
            .collect();
        assert_eq!(open.len(), 2);
        let arguments: Value = serde_json::from_str(&waiting.calls[1].arguments).unwrap();
        assert_eq!(arguments, json!({"question": "why?"}));

        let session = stored(&first.session);
        assert_eq!(session, first.session);
        // The answers come in another order than the calls.
        let second = run(case, &server)
            .session(session)
            .failed_output(&open[1], "nobody knows")
            .output(&open[0], "me")
            .await
            .unwrap();
        assert!(second.is_completed(), "{:?}", second.end);
        server.assert_finished();
        let refused = "Tool 'ask_user': invalid arguments: 'question' must be string, got number";
        let expected = [
            ("ask_user", "me"),
            ("get_weather", "rain in Oslo"),
            ("ask_user", "nobody knows"),
            ("ask_user", refused),
            ("note", "noted x (1)"),
        ];
        assert_one_turn(case.provider, &server.received()[1].body, &expected);
        assert_eq!((second.rounds, second.usage.requests), (1, 2));
        let statuses: Vec<_> = second.tool_calls.iter().map(|call| call.status).collect();
        let answered = CallStatus::Answered;
        let expected = [
            answered,
            CallStatus::Succeeded,
            answered,
            CallStatus::Refused,
            CallStatus::Succeeded,
        ];
        assert_eq!(statuses, expected);
        assert_whole(&second);
    })
    .await;
}

#[tokio::test]
async fn suspended_calls_run_or_not_when_somebody_has_spoken() {
    each(cases(), |case| async move {
        let asked = turn(&[
            ("wipe", json!({"disk": "a"})),
            ("get_weather", json!({"city": "Oslo"})),
            ("wipe", json!({"disk": "b"})),
        ]);
        let server = case.server([asked, say("done")]).await;
        let first = run(case, &server).user("go").await.unwrap();
        let End::Waiting(waiting) = &first.end else {
            panic!("{:?}", first.end)
        };
        let open: Vec<_> = waiting
            .approvals
            .iter()
            .map(|it| it.call_id.clone())
            .collect();
        assert_eq!(open.len(), 2);
        let second = run(case, &server)
            .session(stored(&first.session))
            .approve(&open[1])
            .deny(&open[0], "not on a Sunday")
            .await
            .unwrap();
        assert!(second.is_completed(), "{:?}", second.end);
        server.assert_finished();
        let denied = "Tool 'wipe' needs approval and was not approved. Reason: not on a Sunday";
        let expected = [
            ("wipe", denied),
            ("get_weather", "rain in Oslo"),
            ("wipe", "wiped b"),
        ];
        assert_one_turn(case.provider, &server.received()[1].body, &expected);
        assert_whole(&second);
    })
    .await;
}

#[tokio::test]
async fn a_function_and_an_approval_are_answered_together_with_words_behind_them() {
    each(cases(), |case| async move {
        let asked = turn(&[
            ("wipe", json!({"disk": "a"})),
            ("ask_user", json!({"question": "who?"})),
        ]);
        let server = case.server([asked, say("done")]).await;
        let first = run(case, &server).user("go").await.unwrap();
        let pending: Vec<_> = first.session.pending_calls().collect();
        let suspended: Vec<_> = first.session.suspended_calls().collect();
        assert_eq!((pending.len(), suspended.len()), (1, 1));
        let second = run(case, &server)
            .session(stored(&first.session))
            .output(pending[0], "me")
            .approve(suspended[0])
            .user("hurry")
            .await
            .unwrap();
        assert!(second.is_completed(), "{:?}", second.end);
        let last = &server.received()[1];
        assert_eq!(last.view.user.as_deref(), Some("hurry"));
        let mut outputs: Vec<_> = last
            .view
            .latest_outputs()
            .iter()
            .map(|output| output.text.as_str())
            .collect();
        outputs.sort_unstable();
        assert_eq!(outputs, ["me", "wiped a"]);
        assert_whole(&second);
    })
    .await;
}

#[tokio::test]
async fn every_checkpoint_is_a_place_to_go_on_from() {
    each(cases(), |case| async move {
        let script = || {
            [
                turn(&[
                    ("get_weather", json!({"city": "Oslo"})),
                    ("note", json!({"text": "x"})),
                ]),
                turn(&[("note", json!({"text": "y"}))]),
                say("done"),
            ]
        };
        let server = case.server(script()).await;
        let kept = std::sync::Arc::new(std::sync::Mutex::new(Vec::<Session>::new()));
        let keep = std::sync::Arc::clone(&kept);
        let outcome = run(case, &server)
            .on_checkpoint(move |session| keep.lock().unwrap().push(stored(session)))
            .user("go")
            .await
            .unwrap();
        assert!(outcome.is_completed());
        let bodies: Vec<_> = server.received().iter().map(|it| it.body.clone()).collect();
        let kept = std::mem::take(&mut *kept.lock().unwrap());
        assert_eq!(kept.len(), 4);
        for (at, session) in kept.into_iter().take(3).enumerate() {
            // Crashed before this request: another process sends exactly the same.
            let rest: Vec<_> = script().into_iter().skip(at).collect();
            let server = case.server(rest).await;
            let mut events = Vec::new();
            let mut again = run(case, &server).session(session).start().unwrap();
            while let Some(event) = again.next().await {
                events.push(event.kind);
            }
            assert!(matches!(events.last(), Some(EventKind::RunFinished { .. })));
            let again = again.finish().await;
            assert!(again.is_completed(), "{:?}", again.end);
            assert_eq!(server.received()[0].body, bodies[at], "checkpoint {at}");
            assert_eq!(again.usage, outcome.usage, "checkpoint {at}");
            let length = |records: &[haft::CallRecord]| records.len();
            assert_eq!(length(&again.tool_calls), length(&outcome.tool_calls));
        }
    })
    .await;
}

//! One conversation with every provider: parallel calls, a failing one, a second round, an answer.

use haft::testing::{Chunks, ExpectedOutput, Pieces, Step, call, calls, output_says, say};
use haft::testing::{ScriptedCall, user_says};
use haft::{CallStatus, EventKind, Streaming, json};

use crate::world::{Case, Provider, assert_whole, cases, tools};

const FAILURE: &str = "Tool 'get_weather' failed: no such city";

fn script(provider: Provider) -> [Step; 3] {
    let failed = ExpectedOutput::default().says(FAILURE);
    let failed = if provider.marks_errors() {
        failed.is_error()
    } else {
        failed
    };
    [
        say("Let me sée.")
            .call("get_weather", json!({"city": "Tromsø"}))
            .call("get_weather", json!({"city": "Atlantis"}))
            .usage(100, 20)
            .pieces(Pieces::Each(3))
            .chunks(Chunks::Each(7))
            .expect(
                user_says("How is the weather?")
                    .instructions_contain("Be brief.")
                    .offers(["get_weather", "note"])
                    .items(1),
            ),
        call("note", json!({"text": "\"quoted\" \\ and ☂", "weight": 3}))
            .usage(200, 10)
            .expect(output_says("rain in Tromsø").output(failed).items(6)),
        say("Rain in Tromsø.")
            .usage(300, 5)
            .expect(output_says("noted \"quoted\" \\ and ☂ (3)").items(8)),
    ]
}

#[tokio::test]
async fn a_whole_conversation_works_with_every_provider() {
    for case in cases() {
        let server = case.server(script(case.provider)).await;
        let mut run = case
            .run(&server)
            .tools(tools())
            .instructions("Be brief.")
            .user("How is the weather?")
            .start()
            .unwrap();
        let mut invoked = Vec::new();
        while let Some(event) = run.next().await {
            if let EventKind::ToolInvoked {
                tool_name, success, ..
            } = event.kind
            {
                invoked.push((tool_name, success));
            }
        }
        let outcome = run.finish().await;
        server.assert_finished();
        assert!(outcome.is_completed(), "{case:?}: {:?}", outcome.end);
        assert_eq!(outcome.text, "Rain in Tromsø.");
        assert_eq!(outcome.rounds, 2);
        let usage = outcome.usage;
        assert_eq!(
            (usage.input_tokens, usage.output_tokens, usage.requests),
            (600, 35, 3),
            "{case:?}"
        );
        let records: Vec<_> = outcome
            .tool_calls
            .iter()
            .map(|record| (record.tool_name.as_str(), record.round, record.status))
            .collect();
        assert_eq!(
            records,
            [
                ("get_weather", 1, CallStatus::Succeeded),
                ("get_weather", 1, CallStatus::Failed),
                ("note", 2, CallStatus::Succeeded),
            ],
            "{case:?}"
        );
        // The two run beside each other: they may end in any order.
        invoked[..2].sort();
        let expected = [
            ("get_weather", false),
            ("get_weather", true),
            ("note", true),
        ];
        assert_eq!(
            invoked,
            expected.map(|(name, success)| (name.to_owned(), success))
        );
        let ids: Vec<_> = outcome
            .tool_calls
            .iter()
            .map(|record| &record.call_id)
            .collect();
        assert!(ids.iter().all(|id| !id.is_empty()), "{case:?}");
        assert_ne!(ids[0], ids[1], "{case:?}");
        let source = outcome.tool_calls[0].provenance.source.as_ref().unwrap();
        assert_eq!(source.model, "m");
        assert_whole(&outcome);
    }
}

#[tokio::test]
async fn the_history_is_rendered_as_each_provider_wants_it() {
    for case in cases() {
        let server = case.server(script(case.provider)).await;
        let run = case.run(&server).tools(tools()).instructions("Be brief.");
        let outcome = run.user("How is the weather?").await.unwrap();
        assert!(outcome.is_completed());
        let [_, second, third] = &server.received()[..] else {
            panic!("three requests were expected")
        };
        for (request, which) in [(second, "second"), (third, "third")] {
            let mut body = request.body.clone();
            let members = body.as_object_mut().unwrap();
            // Everything but this is the same for both ways to answer.
            let stream = members.shift_remove("stream").unwrap_or(json!(false));
            assert_eq!(stream, json!(case.stream == Streaming::Pieces));
            members.shift_remove("stream_options");
            insta::assert_json_snapshot!(format!("{}_{which}", case.provider.title()), body);
        }
    }
}

#[tokio::test]
async fn whole_and_streamed_answers_leave_the_same_conversation() {
    for provider in Provider::ALL {
        let mut conversations = Vec::new();
        for stream in [Streaming::Pieces, Streaming::Whole] {
            let case = Case { provider, stream };
            let server = case.server(script(provider)).await;
            let run = case.run(&server).tools(tools()).instructions("Be brief.");
            let outcome = run.user("How is the weather?").await.unwrap();
            conversations.push(outcome.items);
        }
        assert_eq!(conversations[0], conversations[1], "{provider:?}");
    }
}

#[tokio::test]
async fn a_conversation_goes_on_with_another_provider() {
    // Each provider's history is the next one's: whatever one adapter noted down, the others take.
    for first in Provider::ALL {
        for second in Provider::ALL {
            let stream = Streaming::Pieces;
            let case = Case {
                provider: first,
                stream,
            };
            let parallel = || {
                calls([
                    ScriptedCall::new("get_weather", json!({"city": "Oslo"})),
                    ScriptedCall::new("note", json!({"text": "x"})),
                ])
                .think("Hm.")
            };
            let server = case.server([parallel(), say("one").think("Well.")]).await;
            let outcome = case.run(&server).tools(tools()).user("a").await.unwrap();
            assert!(outcome.is_completed(), "{first:?}: {:?}", outcome.end);

            let case = Case {
                provider: second,
                stream,
            };
            let server = case.server([parallel(), say("two")]).await;
            let run = case.run(&server).tools(tools()).session(outcome.session);
            let outcome = run.user("b").await.unwrap();
            server.assert_finished();
            assert!(
                outcome.is_completed(),
                "{first:?} {second:?}: {:?}",
                outcome.end
            );
            let sent = server.received()[1].body.to_string();
            for mark in ["wire_field", "anthropic:"] {
                assert!(!sent.contains(mark), "{first:?} {second:?}: {sent}");
            }
            assert_whole(&outcome);
        }
    }
}

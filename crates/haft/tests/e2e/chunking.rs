//! Answers in awkward pieces and in the odd forms of real servers.

use haft::testing::ScriptedCall;
use haft::testing::{Chunks, Fault, Pieces, ScriptedServer, Step, call, calls, say};
use haft::{CallStatus, Item, Outcome, RawArguments, json};

use crate::world::{Case, Provider, assert_whole, cases, each, streamed, tools};

/// Say that you are there.
#[haft::tool]
fn ping() -> &'static str {
    "pong"
}

async fn run(case: Case, server: &ScriptedServer) -> Outcome {
    let run = case.run(server).tools(tools()).tools([ping]).user("go");
    let outcome = run.await.unwrap();
    assert_whole(&outcome);
    outcome
}

fn two_calls() -> Step {
    say("Sée ☂:")
        .think("Hm, é.")
        .call("note", json!({"text": "ß \"☂\" \\ \n", "weight": 2}))
        .call("get_weather", json!({"city": "Tromsø"}))
}

fn essence(outcome: &Outcome) -> Vec<String> {
    let items = outcome
        .items
        .iter()
        .filter(|item| !matches!(item, Item::Reasoning(_)));
    items
        .map(|item| serde_json::to_string(item).unwrap())
        .collect()
}

/// Sizes by a seed.
fn sizes(seed: u64) -> Vec<usize> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let longest = [3, 20, 150][usize::try_from(seed % 3).unwrap()];
    (0..4_000)
        .map(|_| usize::try_from(random() % longest).unwrap())
        .collect()
}

#[tokio::test]
async fn every_cutting_of_a_stream_means_the_same() {
    each(streamed(), |case| async move {
        let server = case.server([two_calls(), say("done")]).await;
        let whole = run(case, &server).await;
        assert!(whole.is_completed(), "{:?}", whole.end);
        assert_eq!(
            whole.tool_calls[0].result.as_ref().unwrap().output,
            "noted ß \"☂\" \\ \n (2)"
        );
        let seeds = (1..=4).map(|seed| (format!("seed {seed}"), Chunks::Sizes(sizes(seed))));
        let even = [1, 2, 7].map(|size| (format!("{size} bytes each"), Chunks::Each(size)));
        for (at, (how, chunks)) in even.into_iter().chain(seeds).enumerate() {
            let pieces = match at % 3 {
                0 => Pieces::Each(1),
                1 => Pieces::Sizes(sizes(5)),
                _ => Pieces::Whole,
            };
            let step = |step: Step| step.chunks(chunks.clone()).pieces(pieces.clone());
            let server = case.server([step(two_calls()), step(say("done"))]).await;
            let cut = run(case, &server).await;
            assert_eq!(essence(&cut), essence(&whole), "{case:?}, {how}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_stream_may_be_cut_at_any_byte() {
    let cases = streamed().filter(|case| case.provider != Provider::OtherChat);
    each(cases, |case| async move {
        // As long as the short answer is; that of Responses repeats the request, so there only every
        // eleventh place is tried.
        let cuts: Vec<_> = match case.provider {
            Provider::Chat | Provider::OtherChat => (1..1_000).collect(),
            Provider::Anthropic => (1..700).collect(),
            Provider::Ollama => (1..400).collect(),
            Provider::Responses => (1..6_000).step_by(11).collect(),
        };
        let step = |cut: &usize| say("é").chunks(Chunks::Sizes(vec![*cut]));
        let server = case.server(cuts.iter().map(step).collect::<Vec<_>>()).await;
        let model = case.provider.model(&server);
        let binding = haft::Catalog::new()
            .snapshot()
            .bind()
            .without_tools()
            .with_tools([ping]);
        let binding = binding.build().unwrap();
        for cut in cuts {
            let reply = haft::tool_call(&*model, "go", &binding).await;
            let reply = reply.unwrap_or_else(|error| panic!("{case:?}, byte {cut}: {error}"));
            assert_eq!(reply.text, "é", "{case:?}, byte {cut}");
        }
        server.assert_finished();
    })
    .await;
}

#[tokio::test]
async fn empty_null_and_object_arguments_are_what_they_mean() {
    each(cases(), |case| async move {
        for arguments in ["", "null", " ", "{}"] {
            let text = RawArguments::Text(arguments.to_owned());
            let server = case.server([call("ping", text), say("done")]).await;
            let outcome = run(case, &server).await;
            assert!(outcome.is_completed(), "{arguments:?}: {:?}", outcome.end);
            assert_eq!(
                outcome.tool_calls[0].status,
                CallStatus::Succeeded,
                "{arguments:?}"
            );
            server.assert_finished();
        }
        let object = two_calls().fault(Fault::ObjectArguments);
        let server = case.server([object, say("done")]).await;
        let outcome = run(case, &server).await;
        assert!(outcome.is_completed(), "{:?}", outcome.end);
        let statuses: Vec<_> = outcome.tool_calls.iter().map(|call| call.status).collect();
        assert_eq!(statuses, [CallStatus::Succeeded; 2]);
        server.assert_finished();
    })
    .await;
}

#[tokio::test]
async fn missing_and_repeated_ids_are_replaced_and_the_history_pairs_up() {
    each(cases(), |case| async move {
        for broken in [Fault::MissingCallIds, Fault::RepeatedCallIds] {
            let step = || {
                calls([
                    ScriptedCall::new("get_weather", json!({"city": "Oslo"})),
                    ScriptedCall::new("note", json!({"text": "x"})),
                ])
                .fault(broken.clone())
            };
            let server = case.server([step(), step(), say("done")]).await;
            let outcome = run(case, &server).await;
            assert!(outcome.is_completed(), "{broken:?}: {:?}", outcome.end);
            server.assert_finished();
            let mut ids: Vec<_> = outcome
                .tool_calls
                .iter()
                .map(|it| it.call_id.as_str())
                .collect();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), 4, "{broken:?}");
            let last = server.received().pop().unwrap().view;
            let texts: Vec<_> = last
                .outputs
                .iter()
                .map(|output| output.text.as_str())
                .collect();
            let round = ["rain in Oslo", "noted x (1)"];
            assert_eq!(texts, [round, round].concat(), "{broken:?}");
            if case.provider.has_call_ids() {
                let sent: Vec<_> = last
                    .outputs
                    .iter()
                    .filter_map(|it| it.call_id.clone())
                    .collect();
                let here: Vec<_> = outcome
                    .tool_calls
                    .iter()
                    .map(|it| it.call_id.clone())
                    .collect();
                assert_eq!(sent, here, "{broken:?}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn streams_without_usage_or_end_mark_finish_normally() {
    each(cases(), |case| async move {
        let silent = |step: Step| step.without_usage().fault(Fault::NoDone);
        let server = case
            .server([silent(two_calls()), silent(say("done"))])
            .await;
        let outcome = run(case, &server).await;
        assert!(outcome.is_completed(), "{:?}", outcome.end);
        assert_eq!(outcome.text, "done");
        let usage = outcome.usage;
        assert_eq!(
            (usage.input_tokens, usage.output_tokens, usage.requests),
            (0, 0, 2)
        );
        server.assert_finished();
    })
    .await;
}

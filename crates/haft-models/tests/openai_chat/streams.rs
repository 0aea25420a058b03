//! Streams cut anywhere give the same events.

use haft_core::{FinishReason, ModelEvent, Streaming};
use serde_json::{Value, json};

use crate::common::events::{assembled, events_of};
use crate::common::server::{Reply, Server};
use crate::{asked, calls_of, model};

/// As llama.cpp streams it: text, a call token by token, the cost in a last chunk without choices.
const SHORT: &str = concat!(
    "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm…\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Så \\u00e9\"}}]}\r\n\r\n",
    ": keep-alive\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"type\":\"function\",\"function\":{\"name\":\"ping\",\"arguments\":\"{\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\"a\\\":1}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\n",
    "data: [DONE]\n\n",
);

async fn events(reply: Reply) -> Vec<ModelEvent> {
    let server = Server::start([reply]).await;
    let (events, error) = events_of(&model(&server), asked(Streaming::Pieces)).await;
    assert_eq!(error, None);
    events
}

#[tokio::test]
async fn a_stream_is_told_piece_by_piece() {
    insta::assert_debug_snapshot!(events(Reply::sse(SHORT)).await);
}

#[tokio::test]
async fn every_byte_boundary_gives_the_same_events() {
    let expected = events(Reply::sse(SHORT)).await;
    let replies = (1..SHORT.len()).map(|at| Reply::sse(SHORT).cut_at(&[at]));
    let bytewise = Reply::sse(SHORT).in_pieces_of(1);
    let server = Server::start(replies.chain([bytewise])).await;
    let model = model(&server);
    for at in 1..=SHORT.len() {
        let (events, error) = events_of(&model, asked(Streaming::Pieces)).await;
        assert_eq!((events, error), (expected.clone(), None), "cut at {at}");
    }
}

/// Three calls, interleaved, with long arguments, between long texts.
fn long() -> String {
    let mut stream = String::new();
    let mut add = |chunk: Value| stream.push_str(&format!("data: {chunk}\n\n"));
    let delta = |delta: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta}]});
    for n in 0..60 {
        add(delta(json!({"reasoning": format!("thought {n} é😀 ")})));
    }
    for n in 0..60 {
        add(delta(json!({"content": format!("word {n} \n\r\u{2028}")})));
    }
    for index in 0..3 {
        add(delta(
            json!({"tool_calls": [{"index": index, "id": format!("call_{index}"),
            "function": {"name": "get_weather", "arguments": "{\"city\":\""}}]}),
        ));
    }
    for n in 0..80 {
        for index in 0..3 {
            add(delta(
                json!({"tool_calls": [{"index": index, "function": {"arguments": format!("{n}-{index} ü")}}]}),
            ));
        }
    }
    for index in 0..3 {
        add(delta(
            json!({"tool_calls": [{"index": index, "function": {"arguments": "\"}"}}]}),
        ));
    }
    add(json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}));
    stream + "data: [DONE]\n\n"
}

/// A small generator, so that a seed is all there is to a run.
fn random(seed: &mut u64) -> usize {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*seed >> 40).unwrap()
}

#[tokio::test]
async fn any_chunking_of_a_long_stream_gives_the_same_events() {
    let stream = long();
    let expected = events(Reply::sse(&stream)).await;
    let response = assembled(&expected);
    assert_eq!(calls_of(&response).len(), 3);
    assert!(
        calls_of(&response)
            .iter()
            .all(|call| serde_json::from_str::<Value>(call.2).is_ok())
    );
    assert_eq!(
        (response.finish, response.usage),
        (FinishReason::Normal, None)
    );
    let cuts = |seed: u64| {
        let mut state = seed;
        let mut at = 0;
        let mut cuts = Vec::new();
        while at < stream.len() {
            at += 1 + random(&mut state) % 400;
            cuts.push(at.min(stream.len()));
        }
        cuts
    };
    let replies = (0..40).map(|seed| Reply::sse(&stream).cut_at(&cuts(seed)));
    let server = Server::start(replies).await;
    let model = model(&server);
    for seed in 0..40 {
        let (events, error) = events_of(&model, asked(Streaming::Pieces)).await;
        assert!(error.is_none() && events == expected, "seed {seed}");
    }
}

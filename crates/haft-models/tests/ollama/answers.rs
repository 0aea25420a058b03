//! What is made of what comes back.

use haft_core::{FinishReason, Item, ModelErrorKind, ModelRequest, ModelResponse, Streaming};

use crate::common::conversation::tools;
use crate::common::events::{answer_of, assembled, events_of};
use crate::common::server::{Ending, Reply, Server};
use crate::model;

/// As Ollama streams it.
const STREAM: &str = concat!(
    "{\"model\":\"qwen3:8b\",\"created_at\":\"2026-01-01T00:00:00Z\",\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"Two cit\"},\"done\":false}\n",
    "{\"model\":\"qwen3:8b\",\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"ies.\"},\"done\":false}\n",
    "{\"model\":\"qwen3:8b\",\"message\":{\"role\":\"assistant\",\"content\":\"Så…\"},\"done\":false}\n",
    "{\"model\":\"qwen3:8b\",\"message\":{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"get_weather\",\"arguments\":{\"city\" : \"Oslo\"}}},{\"id\":\"call_9\",\"function\":{\"index\":1,\"name\":\"draw_map\",\"arguments\":{}}}]},\"done\":false}\n",
    "{\"model\":\"qwen3:8b\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done_reason\":\"stop\",\"done\":true,\"total_duration\":5,\"prompt_eval_count\":26,\"eval_count\":12}\n",
);

fn asked() -> ModelRequest {
    ModelRequest {
        conversation: "hi".into(),
        tools: tools(),
        ..ModelRequest::default()
    }
}

async fn answered(reply: Reply) -> Result<ModelResponse, haft_core::ModelError> {
    let server = Server::start([reply]).await;
    answer_of(&model(&server), asked()).await
}

#[tokio::test]
async fn thoughts_text_and_whole_calls_without_ids() {
    let response = answered(Reply::ndjson(STREAM)).await.unwrap();
    let kinds: Vec<_> = response.items.iter().map(Item::kind).collect();
    assert_eq!(
        kinds,
        ["reasoning", "message", "function_call", "function_call"]
    );
    assert_eq!(response.items[1].text(), "Så…");
    let Item::FunctionCall(first) = &response.items[2] else {
        panic!("a call")
    };
    assert_eq!(
        (first.call_id.as_str(), first.name.as_str()),
        ("", "get_weather")
    );
    assert_eq!(first.arguments, "{\"city\" : \"Oslo\"}", "byte for byte");
    let Item::FunctionCall(second) = &response.items[3] else {
        panic!("a call")
    };
    assert_eq!(
        (second.call_id.as_str(), second.arguments.as_str()),
        ("call_9", "{}")
    );
    assert_eq!(
        (response.finish, response.model.as_deref()),
        (FinishReason::Normal, Some("qwen3:8b"))
    );
    let usage = response.usage.unwrap();
    assert_eq!(
        (usage.input_tokens, usage.output_tokens, usage.requests),
        (26, 12, 1)
    );
}

#[tokio::test]
async fn every_byte_boundary_gives_the_same_events() {
    let cut = (0..STREAM.len()).map(|at| Reply::ndjson(STREAM).cut_at(&[at]));
    let server = Server::start(cut.chain([Reply::ndjson(STREAM).in_pieces_of(1)])).await;
    let model = model(&server);
    let (expected, error) = events_of(&model, asked()).await;
    assert_eq!(error, None);
    for at in 1..=STREAM.len() {
        assert_eq!(
            events_of(&model, asked()).await,
            (expected.clone(), None),
            "cut at {at}"
        );
    }
}

#[tokio::test]
async fn an_answer_in_one_piece_is_read_the_same_way() {
    let whole = r#"{"model":"m","message":{"role":"assistant","content":"hello"},"done":true,"done_reason":"length"}"#;
    let server = Server::start([Reply::json(200, whole)]).await;
    let mut request = asked();
    request.options.stream = Streaming::Whole;
    let (events, error) = events_of(&model(&server), request).await;
    assert_eq!(error, None);
    let response = assembled(&events);
    assert_eq!(
        (response.items[0].text().as_str(), response.finish),
        ("hello", FinishReason::Length)
    );
    assert_eq!(response.usage, None);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error() {
    let end = STREAM.rfind("{\"model\"").unwrap();
    for ending in [Ending::Clean, Ending::Broken] {
        let error = answered(Reply::ndjson(&STREAM[..end]).ending(ending))
            .await
            .unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Unreachable, "{error}");
    }
    let error = answered(Reply::ndjson(&STREAM[..STREAM.len() - 20]))
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Protocol);
}

#[tokio::test]
async fn errors_are_told_in_ollamas_words() {
    let missing = Reply::json(404, r#"{"error":"model 'qwen3:8b' not found"}"#);
    let error = answered(missing).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the model's provider knows no such model or address (HTTP 404): model 'qwen3:8b' not found"
    );
    let first = STREAM.lines().next().unwrap();
    let stopped = format!("{first}\n{{\"error\":\"model runner has unexpectedly stopped\"}}\n");
    let error = answered(Reply::ndjson(&stopped)).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::ServerError);
    assert_eq!(error.message, "model runner has unexpectedly stopped");
}

#[tokio::test]
async fn thoughts_go_back_with_their_turn() {
    let server = Server::start([Reply::ndjson(STREAM)]).await;
    let model = model(&server);
    let mut request = asked();
    let mut answer = answer_of(&model, request.clone()).await.unwrap();
    // Ids are given by whoever runs the calls.
    for (place, item) in answer.items.iter_mut().enumerate() {
        if let Item::FunctionCall(call) = item {
            call.call_id = format!("call_{place}");
        }
    }
    request.conversation.extend(answer.items);
    request
        .conversation
        .push(Item::function_call_output("call_3", "a map"));
    request
        .conversation
        .push(Item::function_call_output("call_2", "rain"));
    answer_of(&model, request).await.unwrap();
    insta::assert_json_snapshot!(server.requests()[1].json()["messages"]);
}

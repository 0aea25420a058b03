//! What each protocol looks like on the wire.

use haft_core::{FinishReason, Item, Reasoning};
use haft_models::testing::{
    Chunks, Fault, Pieces, Protocol, ScriptedServer, Step, call, fault, refuse, say, think,
};
use serde_json::{Value, json};

use super::{chunks_of, client, json_of, post, request, stream, with_stream};

/// Thoughts, text and two calls.
fn rich() -> Step {
    think("Oslo, now.")
        .sum_up("Where.")
        .sum_up("When.")
        .say("Let me see.")
        .call("get_weather", json!({"city": "Oslo"}))
        .call("now", "{}")
        .usage(20, 9)
        .pieces(Pieces::Each(8))
}

async fn streamed(protocol: Protocol, step: Step) -> String {
    let server = ScriptedServer::start([step]).await.unwrap();
    let mut body = with_stream(request(protocol, "hi"), true);
    if protocol == Protocol::ChatCompletions {
        body["stream_options"] = json!({"include_usage": true});
    }
    let response = post(&server, protocol, &body).await.unwrap();
    let (chunks, is_broken) = chunks_of(response).await;
    assert!(!is_broken);
    server.assert_finished();
    String::from_utf8(chunks.concat()).unwrap()
}

async fn whole(protocol: Protocol, step: Step) -> Value {
    let server = ScriptedServer::start([step]).await.unwrap();
    let body = with_stream(request(protocol, "hi"), false);
    let response = post(&server, protocol, &body).await.unwrap();
    let content_type = response.headers()["content-type"].to_str().unwrap();
    assert_eq!(content_type, "application/json");
    json_of(response).await
}

#[tokio::test]
async fn chat_completions_stream_as_recorded() {
    insta::assert_snapshot!(streamed(Protocol::ChatCompletions, rich()).await);
}

#[tokio::test]
async fn responses_stream_as_recorded() {
    insta::assert_snapshot!(streamed(Protocol::Responses, rich()).await);
}

#[tokio::test]
async fn anthropic_messages_stream_as_recorded() {
    insta::assert_snapshot!(streamed(Protocol::Messages, rich()).await);
}

#[tokio::test]
async fn ollama_streams_as_recorded() {
    insta::assert_snapshot!(streamed(Protocol::Ollama, rich()).await);
}

#[tokio::test]
async fn whole_answers_are_as_recorded() {
    for protocol in Protocol::ALL {
        let body = whole(protocol, rich()).await;
        insta::assert_json_snapshot!(format!("whole_{protocol:?}"), body);
    }
}

#[tokio::test]
async fn a_raw_item_of_reasoning_shows_its_thoughts_where_the_protocol_can() {
    let thoughts = Item::Reasoning(Reasoning {
        content: vec![haft_core::ContentPart::ReasoningText { text: "raw".into() }],
        encrypted_content: Some("sealed".into()),
        ..Reasoning::default()
    });
    let text = streamed(Protocol::Responses, say("x").item(thoughts.clone())).await;
    assert!(
        text.contains("event: response.reasoning_text.delta\n"),
        "{text}"
    );
    assert!(text.contains(r#""encrypted_content":"sealed""#), "{text}");
    let text = streamed(Protocol::Messages, say("x").item(thoughts)).await;
    assert!(
        text.contains(r#"{"type":"signature_delta","signature":"sealed"}"#),
        "{text}"
    );
}

#[tokio::test]
async fn each_protocol_says_in_its_own_words_why_it_stopped() {
    let reason = |protocol: Protocol, body: &Value| -> Value {
        let path = match protocol {
            Protocol::ChatCompletions => "/choices/0/finish_reason",
            Protocol::Responses => "/status",
            Protocol::Messages => "/stop_reason",
            Protocol::Ollama => "/done_reason",
        };
        body.pointer(path).cloned().unwrap_or(Value::Null)
    };
    let steps = || {
        [
            say("x"),
            call("t", "{}"),
            say("x").finish(FinishReason::Length),
            say("x").finish(FinishReason::ContentFilter),
            say("x").finish(FinishReason::Unknown),
            refuse("no"),
        ]
    };
    let expected = [
        json!([
            "stop",
            "tool_calls",
            "length",
            "content_filter",
            null,
            "stop"
        ]),
        json!([
            "completed",
            "completed",
            "incomplete",
            "incomplete",
            "completed",
            "completed"
        ]),
        json!([
            "end_turn",
            "tool_use",
            "max_tokens",
            "refusal",
            null,
            "refusal"
        ]),
        json!(["stop", "stop", "length", "content_filter", null, "stop"]),
    ];
    for (protocol, expected) in Protocol::ALL.into_iter().zip(expected) {
        let mut reasons = Vec::new();
        for step in steps() {
            reasons.push(reason(protocol, &whole(protocol, step).await));
        }
        assert_eq!(Value::from(reasons), expected, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_cut_answer_of_the_responses_api_ends_incomplete() {
    let step = say("cut").finish(FinishReason::Length);
    let text = streamed(Protocol::Responses, step).await;
    assert!(text.contains("event: response.incomplete\n"));
    assert!(text.contains(r#""incomplete_details":{"reason":"max_output_tokens"}"#));
    let step = say("cut").finish(FinishReason::Error);
    let text = streamed(Protocol::Responses, step).await;
    assert!(text.contains("event: response.failed\n"));
}

#[tokio::test]
async fn usage_is_told_or_not_as_the_step_says() {
    for protocol in Protocol::ALL {
        let told = ["\"usage\":{", "_eval_count"];
        let text = streamed(protocol, say("x")).await;
        assert!(told.iter().any(|word| text.contains(word)), "{protocol:?}");
        let text = streamed(protocol, say("x").without_usage()).await;
        assert!(!told.iter().any(|word| text.contains(word)), "{protocol:?}");
    }
}

#[tokio::test]
async fn a_chat_stream_tells_usage_only_when_asked() {
    let server = ScriptedServer::start([say("x")]).await.unwrap();
    let (text, _) = stream(&server, Protocol::ChatCompletions).await;
    assert!(!text.contains("usage"), "{text}");
}

#[tokio::test]
async fn ollama_streams_unless_told_otherwise() {
    let server = ScriptedServer::start([say("x")]).await.unwrap();
    let response = post(&server, Protocol::Ollama, &request(Protocol::Ollama, "hi"))
        .await
        .unwrap();
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    assert_eq!(response.text().await.unwrap().lines().count(), 2);
}

#[tokio::test]
async fn bytes_come_in_the_chunks_that_the_step_says() {
    for protocol in Protocol::ALL {
        let step = || say("häft, a handle").pieces(Pieces::Each(1));
        let server = ScriptedServer::start([
            step(),
            step().chunks(Chunks::Each(7)),
            step().chunks(Chunks::Sizes(vec![1, 0, 100, 3])),
        ])
        .await
        .unwrap();
        let mut received = Vec::new();
        for _ in 0..3 {
            let body = with_stream(request(protocol, "hi"), true);
            let response = post(&server, protocol, &body).await.unwrap();
            let (chunks, _) = chunks_of(response).await;
            let sizes: Vec<_> = chunks.iter().map(bytes::Bytes::len).collect();
            received.push((chunks, sizes, ()));
        }
        let is_event = |chunk: &bytes::Bytes| chunk.ends_with(b"\n");
        assert!(received[0].0.iter().all(is_event), "{protocol:?}");
        let (last, full) = received[1].1.split_last().unwrap();
        assert!(
            full.iter().all(|size| *size == 7) && *last <= 7,
            "{protocol:?}"
        );
        assert_eq!(received[2].1[..3], [1, 100, 3], "{protocol:?}");
        assert_eq!(received[2].1.len(), 4, "{protocol:?}");
        // Whatever the chunks, the same bytes but for the number of the answer.
        let texts: Vec<_> = (1..)
            .zip(&received)
            .map(|(number, (chunks, ..))| {
                let text = String::from_utf8(chunks.concat()).unwrap();
                ["-", "_"].iter().fold(text, |text, dash| {
                    text.replace(&format!("script{dash}{number}"), "script")
                })
            })
            .collect();
        assert_eq!(texts[0], texts[1]);
        assert_eq!(texts[0], texts[2]);
    }
}

#[tokio::test]
async fn the_models_are_listed_without_taking_a_step() {
    let server = ScriptedServer::start([]).await.unwrap();
    let get = |path: &str| client().get(format!("{}{path}", server.url()));
    let models = json_of(get("/v1/models").send().await.unwrap()).await;
    assert_eq!(models["data"][0]["id"], "scripted");
    let models = get("/v1/models").header("anthropic-version", "2023-06-01");
    let models = json_of(models.send().await.unwrap()).await;
    assert_eq!(models["data"][0]["type"], "model");
    let tags = json_of(get("/api/tags").send().await.unwrap()).await;
    assert_eq!(tags["models"][0]["name"], "scripted");
    assert_eq!(get("/v1/nothing").send().await.unwrap().status(), 404);
    assert_eq!(get("/v1/responses").send().await.unwrap().status(), 405);
    server.assert_finished();
}

#[tokio::test]
async fn errors_have_the_protocols_form_unless_the_script_gives_one() {
    let expected = [
        json!({"error": {"message": "the script says so", "type": "rate_limit_error",
            "param": null, "code": "rate_limit_exceeded"}}),
        json!({"error": {"message": "the script says so", "type": "rate_limit_error",
            "param": null, "code": "rate_limit_exceeded"}}),
        json!({"type": "error", "error": {"type": "rate_limit_error",
            "message": "the script says so"}, "request_id": "req_script"}),
        json!({"error": "the script says so"}),
    ];
    for (protocol, expected) in Protocol::ALL.into_iter().zip(expected) {
        let server = ScriptedServer::start([
            fault(Fault::status(429).with_header("retry-after", "3")),
            fault(Fault::status(418).with_body(json!({"own": true}))),
            fault(
                Fault::status(500)
                    .with_body("plain")
                    .with_header("Content-Type", "text/x"),
            ),
        ])
        .await
        .unwrap();
        let body = request(protocol, "hi");
        let limited = post(&server, protocol, &body).await.unwrap();
        assert_eq!(limited.status(), 429);
        assert_eq!(limited.headers()["retry-after"], "3");
        assert_eq!(json_of(limited).await, expected);
        let own = post(&server, protocol, &body).await.unwrap();
        assert_eq!(own.status(), 418);
        assert_eq!(json_of(own).await, json!({"own": true}));
        let plain = post(&server, protocol, &body).await.unwrap();
        assert_eq!(plain.headers()["content-type"], "text/x");
        assert_eq!(plain.text().await.unwrap(), "plain");
        server.assert_finished();
    }
}

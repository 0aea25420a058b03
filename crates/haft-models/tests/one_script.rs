//! One script means the same in this process and through every adapter over HTTP.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

use std::sync::Arc;

use futures_util::StreamExt;
use haft_core::{
    Assembly, Conversation, FinishReason, FunctionCallOutput, Item, Model, ModelError,
    ModelErrorKind, ModelOptions, ModelRequest, ModelResponse, Streaming, ToolDefinition,
    ToolSpecs,
};
use haft_models::testing::{
    Chunks, Fault, Pieces, Protocol, ScriptedModel, ScriptedServer, Step, fault, output_contains,
    say, user_contains,
};
use haft_models::{Anthropic, Ollama, OpenAiChat, OpenAiResponses};
use serde_json::{Value, json};

fn adapter(protocol: Protocol, server: &ScriptedServer) -> Arc<dyn Model> {
    let (root, base) = (server.url(), server.base_url());
    match protocol {
        Protocol::ChatCompletions => Arc::new(
            OpenAiChat::new("m")
                .base_url(&base)
                .api_key("key".to_owned()),
        ),
        Protocol::Responses => Arc::new(
            OpenAiResponses::new("m")
                .base_url(&base)
                .api_key("key".to_owned()),
        ),
        Protocol::Messages => Arc::new(
            Anthropic::new("m")
                .base_url(&root)
                .api_key("key".to_owned()),
        ),
        Protocol::Ollama => Arc::new(Ollama::new("m").base_url(&root)),
    }
}

fn tools() -> ToolSpecs {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}},
        "required": ["city"], "additionalProperties": false});
    let weather = ToolDefinition::builder("get_weather").description("The weather");
    [weather.parameters(schema).build().unwrap()]
        .into_iter()
        .collect()
}

fn request(conversation: Conversation, stream: Streaming) -> ModelRequest {
    ModelRequest {
        instructions: Some("Be brief.".into()),
        conversation,
        tools: tools(),
        options: ModelOptions {
            stream,
            ..ModelOptions::default()
        },
        ..ModelRequest::default()
    }
}

async fn respond(model: &dyn Model, request: ModelRequest) -> Result<ModelResponse, ModelError> {
    let mut assembly = Assembly::default();
    let mut stream = model.send(request).await?;
    while let Some(event) = stream.next().await {
        assembly.add(event?);
    }
    Ok(assembly
        .take_finished()
        .expect("a stream without error is whole"))
}

/// What an answer says, without what only one provider writes into it.
fn essence(response: &ModelResponse) -> Vec<Value> {
    let essence = |item: &Item| match item {
        Item::FunctionCall(call) => {
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
            json!({"call": call.name, "arguments": arguments})
        }
        item => json!({"said": item.text()}),
    };
    response.items.iter().map(essence).collect()
}

fn script() -> [Step; 2] {
    [
        say("Let me sée.")
            .call("get_weather", json!({"city": "Tromsø"}))
            .call("get_weather", json!({"city": "Oslo"}))
            .expect(
                user_contains("weather")
                    .instructions_contain("brief")
                    .offers(["get_weather"])
                    .items(1),
            )
            .pieces(Pieces::Each(3))
            .chunks(Chunks::Each(5)),
        say("Rain.").expect(output_contains("rain").output_contains("no such city")),
    ]
}

/// Plays the script to its end, with a caller's part in it.
async fn play(model: &dyn Model, stream: Streaming) -> Vec<Vec<Value>> {
    let mut conversation = Conversation::from("How is the weather?");
    let first = respond(model, request(conversation.clone(), stream))
        .await
        .unwrap();
    assert_eq!(first.finish, FinishReason::Normal);
    let usage = first.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (10, 5));
    let mut outputs = Vec::new();
    for (position, mut item) in first.items.iter().cloned().enumerate() {
        if let Item::FunctionCall(call) = &mut item {
            // What the engine does for providers without ids.
            if call.call_id.is_empty() {
                call.call_id = format!("made_{position}");
            }
            let text = if outputs.is_empty() {
                "rain"
            } else {
                "no such city"
            };
            let output = FunctionCallOutput::new(call.call_id.clone(), text);
            outputs.push(Item::FunctionCallOutput(output));
        }
        conversation.push(item);
    }
    conversation.extend(outputs);
    let second = respond(model, request(conversation, stream)).await.unwrap();
    vec![essence(&first), essence(&second)]
}

#[tokio::test]
async fn one_script_means_the_same_everywhere() {
    for stream in [Streaming::Pieces, Streaming::Whole] {
        let model = ScriptedModel::new(script());
        let here = play(&model, stream).await;
        model.assert_finished();
        assert_eq!(here[1], [json!({"said": "Rain."})]);
        for protocol in Protocol::ALL {
            let server = ScriptedServer::start(script()).await.unwrap();
            let there = play(&*adapter(protocol, &server), stream).await;
            server.assert_finished();
            assert_eq!(there, here, "{protocol:?}, {stream:?}");
        }
    }
}

#[tokio::test]
async fn one_fault_is_the_same_kind_of_error_everywhere() {
    let faults = || {
        [
            (
                Fault::status(429).with_header("retry-after", "2"),
                ModelErrorKind::RateLimit,
            ),
            (Fault::status(503), ModelErrorKind::ServerError),
            (Fault::status(401), ModelErrorKind::Unauthorized),
            (Fault::Html(502), ModelErrorKind::ServerError),
            (Fault::Closed, ModelErrorKind::Unreachable),
            (Fault::CutAfterEvents(2), ModelErrorKind::Unreachable),
        ]
    };
    for (place, (_, kind)) in faults().into_iter().enumerate() {
        let step = || {
            let (broken, _) = faults().into_iter().nth(place).unwrap();
            fault(broken).say("hello").pieces(Pieces::Each(1))
        };
        let asked = || request("hi".into(), Streaming::Pieces);
        let model = ScriptedModel::new([step()]);
        let here = respond(&model, asked()).await.unwrap_err();
        assert_eq!(here.kind, kind);
        for protocol in Protocol::ALL {
            let server = ScriptedServer::start([step()]).await.unwrap();
            let model = adapter(protocol, &server);
            let there = respond(&*model, asked()).await.unwrap_err();
            let essence = |error: &ModelError| (error.kind, error.status, error.retry_after);
            assert_eq!(essence(&there), essence(&here), "{protocol:?}: {there}");
        }
    }
}

#[tokio::test]
async fn a_script_that_is_not_kept_is_no_reason_to_try_again() {
    for protocol in Protocol::ALL {
        let server = ScriptedServer::start([]).await.unwrap();
        let model = adapter(protocol, &server);
        let error = respond(&*model, request("hi".into(), Streaming::Pieces))
            .await
            .unwrap_err();
        assert!(!error.kind.is_retryable(), "{protocol:?}: {error}");
        assert!(
            error.message.contains("came after the last of 0 steps"),
            "{error}"
        );
    }
}

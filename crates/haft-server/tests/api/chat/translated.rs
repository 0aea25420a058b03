//! In front of models of other protocols: the same words, through their adapters.

use std::time::Duration;

use futures_util::StreamExt as _;
use haft_core::{
    BoxFuture, Capabilities, FinishReason, ItemKind, Model, ModelError, ModelEvent, ModelRequest,
    ModelStream,
};
use haft_models::testing::{
    Fault, Pieces, ScriptedServer, call, fail, fault, output_says, say, think,
};
use haft_models::{Anthropic, OfflineModel, Ollama, OpenAiResponses, ScriptedModel};
use haft_server::ServerOptions;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{asked, complete, frames, send, stream, text_of};
use crate::support::{Served, Setup};

fn with_tools(text: &str) -> Value {
    let mut body = asked(text);
    body["tools"] = json!([{"type": "function", "function": {
        "name": "get_weather", "description": "Tells the weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }}]);
    body
}

/// Every protocol that is no Chat, in front of this backend.
async fn all_in_front_of(backend: &ScriptedServer) -> Vec<(&'static str, Served)> {
    let anthropic = Anthropic::new("m").base_url(&backend.url());
    let responses = OpenAiResponses::new("m").base_url(&backend.base_url());
    let ollama = Ollama::new("m").base_url(&backend.url());
    vec![
        ("anthropic", Setup::of(anthropic).serve().await),
        ("responses", Setup::of(responses).serve().await),
        ("ollama", Setup::of(ollama).serve().await),
    ]
}

#[tokio::test]
async fn every_protocol_answers_whole_and_in_pieces() {
    let step = || say("Hello there.").usage(9, 4).pieces(Pieces::Each(5));
    let backend = ScriptedServer::start([step().forever()]).await.unwrap();
    for (protocol, served) in all_in_front_of(&backend).await {
        let answer = complete(&served, asked("hi")).await.ok();
        assert_eq!(answer["object"], "chat.completion", "{protocol}");
        assert_eq!(answer["model"], "default");
        let choice = &answer["choices"][0];
        assert_eq!(choice["message"]["content"], "Hello there.", "{protocol}");
        assert_eq!(choice["finish_reason"], "stop");
        assert_eq!(answer["usage"]["total_tokens"], 13, "{protocol}");

        let mut body = asked("hi");
        body["stream_options"] = json!({"include_usage": true});
        let chunks = stream(&served, body).await;
        assert_eq!(text_of(&chunks), "Hello there.", "{protocol}");
        assert!(chunks.len() > 4, "{protocol}: {}", chunks.len());
        assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
        let last = chunks.last().unwrap();
        assert_eq!(
            (
                last["choices"].as_array().map(Vec::len),
                &last["usage"]["total_tokens"]
            ),
            (Some(0), &json!(13))
        );
        for chunk in &chunks {
            assert_eq!(
                (&chunk["object"], &chunk["id"]),
                (&json!("chat.completion.chunk"), &chunks[0]["id"])
            );
        }
    }
}

#[tokio::test]
async fn calls_and_outputs_go_round_through_every_protocol() {
    let script = [
        call("get_weather", json!({"city": "Oslo"})),
        call("get_weather", json!({"city": "Oslo"})),
        say("Rain.").expect(output_says("rain")),
    ];
    for at in 0..3 {
        let backend = ScriptedServer::start(script.clone()).await.unwrap();
        let (protocol, served) = all_in_front_of(&backend).await.swap_remove(at);
        let chunks = stream(&served, with_tools("Weather in Oslo?")).await;
        let calls: Vec<_> = chunks
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].get(0))
            .collect();
        assert_eq!(
            (&calls[0]["index"], &calls[0]["type"]),
            (&json!(0), &json!("function")),
            "{protocol}"
        );
        assert_eq!(calls[0]["function"]["name"], "get_weather");
        let arguments: String = calls
            .iter()
            .filter_map(|call| call["function"]["arguments"].as_str())
            .collect();
        assert_eq!(
            serde_json::from_str::<Value>(&arguments).unwrap(),
            json!({"city": "Oslo"})
        );
        assert_eq!(
            chunks.last().unwrap()["choices"][0]["finish_reason"],
            "tool_calls"
        );

        let mut body = with_tools("Weather in Oslo?");
        let answer = complete(&served, body.clone()).await.ok();
        assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
        let message = answer["choices"][0]["message"].clone();
        assert_eq!(message["content"], Value::Null);
        let id = message["tool_calls"][0]["id"].clone();
        assert!(!id.as_str().unwrap().is_empty(), "{protocol}");
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(message);
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": "rain"}));
        let answer = complete(&served, body).await.ok();
        assert_eq!(
            answer["choices"][0]["message"]["content"], "Rain.",
            "{protocol}"
        );
        backend.assert_finished();
    }
}

#[tokio::test]
async fn what_was_asked_reaches_anthropic_in_its_own_words() {
    let backend = ScriptedServer::start([think("hm").say("{}")])
        .await
        .unwrap();
    let served = Setup::of(Anthropic::new("claude").base_url(&backend.url()))
        .serve()
        .await;
    let mut body = with_tools("hi");
    body["messages"]
        .as_array_mut()
        .unwrap()
        .insert(0, json!({"role": "system", "content": "Be brief."}));
    for (member, value) in [
        (
            "tool_choice",
            json!({"type": "function", "function": {"name": "get_weather"}}),
        ),
        ("parallel_tool_calls", json!(false)),
        ("max_tokens", json!(77)),
        ("temperature", json!(0.5)),
        ("stop", json!(["END"])),
        ("user", json!("someone")),
        ("seed", json!(7)),
    ] {
        body[member] = value;
    }
    let answer = complete(&served, body).await.ok();
    assert_eq!(answer["choices"][0]["message"]["reasoning_content"], "hm");
    let mut received = backend.received()[0].body.clone();
    received.as_object_mut().unwrap().shift_remove("tools");
    insta::assert_json_snapshot!(received);
}

#[tokio::test]
async fn nothing_is_run_or_added_and_there_is_nothing_to_retrieve() {
    let model = ScriptedModel::new([call("get_weather", json!({"city": "Oslo"})).forever()]);
    let asked_for = model.clone();
    let served = Setup::of(model).serve().await;
    complete(&served, with_tools("Weather?")).await.ok();
    let answer = complete(&served, asked("Weather?")).await.ok();
    let received = asked_for.received();
    assert_eq!(received.len(), 2);
    assert_eq!((received[0].tools.len(), received[1].tools.len()), (1, 0));
    let id = answer["id"].as_str().unwrap();
    let found = served.get(&format!("/responses/{id}")).await;
    assert_eq!(found.status, 404);
    assert!(
        received
            .iter()
            .all(|request| request.instructions.is_none())
    );
}

#[tokio::test]
async fn the_offline_model_is_reached_too() {
    let served = Setup::of(OfflineModel::new()).serve().await;
    let answer = complete(&served, with_tools("What is the weather in Oslo?"))
        .await
        .ok();
    let function = &answer["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!(
        function,
        &json!({"name": "get_weather", "arguments": "{\"city\":\"Oslo\"}"})
    );
    let chunks = stream(&served, asked("Say hello.")).await;
    assert!(!text_of(&chunks).is_empty());
}

#[tokio::test]
async fn what_fails_before_the_first_chunk_is_an_http_error() {
    for is_streamed in [false, true] {
        let script = [
            fail(429),
            fail(400),
            fail(401),
            fail(529),
            fault(Fault::Closed),
        ];
        let backend = ScriptedServer::start(script).await.unwrap();
        let served = Setup::of(Anthropic::new("m").base_url(&backend.url()))
            .serve()
            .await;
        for expected in [
            (429, "rate_limit_exceeded"),
            (400, "invalid_value"),
            (502, "backend_authentication_error"),
            (503, "server_is_overloaded"),
            (502, "backend_unreachable"),
        ] {
            let mut body = asked("hi");
            body["stream"] = is_streamed.into();
            let answer = complete(&served, body).await;
            let (status, code, _) = answer.error();
            assert_eq!((status, code), expected, "{}", answer.body);
            assert_eq!(answer.headers["content-type"], "application/json");
        }
        let mut body = asked("hi");
        body["n"] = 2.into();
        assert_eq!(
            complete(&served, body).await.error(),
            (400, "unsupported_value", Some("n"))
        );
        let audio = json!({"messages": [{"role": "user", "content": [
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}]}]});
        let answer = complete(&served, audio).await;
        assert_eq!(
            answer.error(),
            (
                400,
                "unsupported_content",
                Some("messages[0].content[0].type")
            )
        );
        assert!(
            answer.body["error"]["message"]
                .as_str()
                .unwrap()
                .contains("`input_audio`")
        );
        backend.assert_finished();
    }
}

#[tokio::test]
async fn what_fails_in_the_middle_is_an_error_in_the_stream_and_its_end() {
    let broken = || say("one two three").pieces(Pieces::Each(4));
    let script = [
        broken().fault(Fault::CutAfterEvents(5)),
        broken().fault(Fault::ErrorEvent {
            after_events: 5,
            code: Some("overloaded_error".into()),
            message: "too much".into(),
        }),
    ];
    let backend = ScriptedServer::start(script).await.unwrap();
    let served = Setup::of(Anthropic::new("m").base_url(&backend.url()))
        .serve()
        .await;
    for code in ["backend_unreachable", "model_error"] {
        let mut body = asked("hi");
        body["stream"] = true.into();
        let response = send(&served, &body.to_string()).await;
        assert_eq!(response.status(), 200);
        let text = response.text().await.unwrap();
        let (chunks, _) = frames(&text);
        assert!(
            !text_of(&chunks).is_empty() && !text.contains("[DONE]"),
            "{text}"
        );
        let error = &chunks.last().unwrap()["error"];
        assert_eq!(error["code"], code, "{text}");
        let members: Vec<_> = error.as_object().unwrap().keys().collect();
        assert_eq!(members, ["message", "type", "param", "code"]);
    }
}

/// A model that says one word, then nothing, and notices when nobody listens any more.
struct Silent {
    says_a_word: bool,
    tell: std::sync::Mutex<Option<oneshot::Sender<()>>>,
}

struct Leaving(Option<oneshot::Sender<()>>);

impl Drop for Leaving {
    fn drop(&mut self) {
        if let Some(tell) = self.0.take() {
            let _nobody_asks = tell.send(());
        }
    }
}

impl Model for Silent {
    fn name(&self) -> &'static str {
        "silent"
    }

    fn provider(&self) -> &'static str {
        "test"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn send(&self, _: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        let leaving = Leaving(self.tell.lock().unwrap().take());
        let word = [
            ModelEvent::Started {
                response_id: None,
                model: None,
            },
            ModelEvent::ItemStarted {
                index: 0,
                id: None,
                kind: ItemKind::Message,
            },
            ModelEvent::TextDelta {
                index: 0,
                text: "one".into(),
            },
        ];
        let said = if self.says_a_word {
            word.to_vec()
        } else {
            Vec::new()
        };
        let silence = futures_util::stream::once(async move {
            let _held = leaving;
            std::future::pending().await
        });
        let events = futures_util::stream::iter(said.into_iter().map(Ok)).chain(silence);
        Box::pin(async move { Ok(Box::pin(events) as ModelStream) })
    }
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_request_to_the_model() {
    for (is_streamed, says_a_word) in [(true, true), (true, false), (false, true)] {
        let (tell, left) = oneshot::channel();
        let model = Silent {
            says_a_word,
            tell: Some(tell).into(),
        };
        let mut setup = Setup::of(model);
        // A stream begins although the model is silent, and says that it lives.
        setup.options = ServerOptions {
            answer_wait: Duration::from_millis(10),
            keep_alive: Duration::from_millis(10),
            ..ServerOptions::default()
        };
        let served = setup.serve().await;
        let mut body = asked("hi");
        body["stream"] = is_streamed.into();
        if is_streamed {
            let mut bytes = send(&served, &body.to_string()).await.bytes_stream();
            let mut seen = String::new();
            while !seen.contains(": keep-alive\n\n") {
                seen.push_str(std::str::from_utf8(&bytes.next().await.unwrap().unwrap()).unwrap());
            }
            assert_eq!(seen.contains("one"), says_a_word);
        } else {
            let body = body.to_string();
            let waiting = tokio::time::timeout(Duration::from_millis(100), send(&served, &body));
            assert!(waiting.await.is_err(), "nobody answered");
        }
        tokio::time::timeout(Duration::from_secs(20), left)
            .await
            .expect("still asking")
            .unwrap();
    }
}

#[tokio::test]
async fn an_answer_that_failed_is_none() {
    let model = ScriptedModel::new([say("half").finish(FinishReason::Error).forever()]);
    let served = Setup::of(model).serve().await;
    let answer = complete(&served, asked("hi")).await;
    assert_eq!(answer.error(), (500, "model_error", None));
}

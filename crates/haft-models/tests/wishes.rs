//! Every wish about an answer reaches the provider under its own name there, and only if it was
//! made; how likely tokens were comes back in one form.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::events::answer_of;
use common::server::{Reply, Server};
use haft_core::{
    ContentPart, Item, Message, Model, ModelOptions, ModelRequest, OutputFormat, Role, Streaming,
    ToolChoice,
};
use haft_models::testing::{ScriptedServer, Step, say};
use haft_models::{
    Anthropic, CapabilityOverrides, ChatQuirks, ChatServer, Ollama, OpenAiChat, OpenAiResponses,
};
use serde_json::{Map, Value, json};

fn wishes() -> ModelOptions {
    ModelOptions {
        reasoning_effort: Some("low".into()),
        reasoning_summary: Some("concise".into()),
        verbosity: Some("high".into()),
        presence_penalty: Some(0.5),
        frequency_penalty: Some(-0.5),
        top_logprobs: Some(3),
        json_object: true,
        safety_identifier: Some("user-1".into()),
        prompt_cache_key: Some("key-1".into()),
        service_tier: Some("priority".into()),
        stream: Streaming::Whole,
        ..ModelOptions::default()
    }
}

fn asking(options: ModelOptions) -> ModelRequest {
    ModelRequest {
        conversation: "hi".into(),
        options,
        ..ModelRequest::default()
    }
}

/// What a request says beside its conversation.
async fn said<M: Model>(model: impl FnOnce(&ScriptedServer) -> M, request: ModelRequest) -> Value {
    let mut body = sent(model, request).await;
    let members = body.as_object_mut().unwrap();
    for member in ["messages", "input", "model"] {
        members.shift_remove(member);
    }
    body
}

async fn sent<M: Model>(model: impl FnOnce(&ScriptedServer) -> M, request: ModelRequest) -> Value {
    let server = ScriptedServer::start([say("{}")]).await.unwrap();
    answer_of(&model(&server), request).await.unwrap();
    server.received()[0].body.clone()
}

fn chat(server: &ScriptedServer) -> OpenAiChat {
    OpenAiChat::new("m").base_url(&server.base_url())
}

fn responses(server: &ScriptedServer) -> OpenAiResponses {
    OpenAiResponses::new("m").base_url(&server.base_url())
}

fn anthropic(server: &ScriptedServer) -> Anthropic {
    Anthropic::new("m").base_url(&server.url())
}

fn ollama(server: &ScriptedServer) -> Ollama {
    Ollama::new("m").base_url(&server.url())
}

#[tokio::test]
async fn chat_has_its_names_and_late_members_only_where_they_are_known() {
    let everywhere = json!({
        "response_format": {"type": "json_object"},
        "presence_penalty": 0.5, "frequency_penalty": -0.5,
        "logprobs": true, "top_logprobs": 3, "reasoning_effort": "low",
    });
    assert_eq!(said(chat, asking(wishes())).await, everywhere);
    let mut late = everywhere;
    for (member, value) in [
        ("verbosity", "high"),
        ("service_tier", "priority"),
        ("safety_identifier", "user-1"),
        ("prompt_cache_key", "key-1"),
    ] {
        late[member] = value.into();
    }
    for quirks in [
        ChatQuirks {
            server: Some(ChatServer::Openai),
            ..ChatQuirks::default()
        },
        ChatQuirks {
            openai_members: Some(true),
            ..ChatQuirks::default()
        },
    ] {
        let known = |server: &ScriptedServer| chat(server).quirks(quirks);
        assert_eq!(said(known, asking(wishes())).await, late);
    }
}

#[tokio::test]
async fn responses_has_its_names() {
    assert_eq!(
        said(responses, asking(wishes())).await,
        json!({
            "store": false,
            "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
            "top_logprobs": 3, "service_tier": "priority", "safety_identifier": "user-1",
            "prompt_cache_key": "key-1",
            "reasoning": {"effort": "low", "summary": "concise"},
            "text": {"format": {"type": "json_object"}, "verbosity": "high"},
        })
    );
    let summary = ModelOptions {
        reasoning_summary: Some("auto".into()),
        stream: Streaming::Whole,
        ..ModelOptions::default()
    };
    assert_eq!(
        said(responses, asking(summary)).await,
        json!({"store": false, "include": ["reasoning.encrypted_content"],
            "reasoning": {"summary": "auto"}})
    );
}

#[tokio::test]
async fn anthropic_has_its_names_and_is_asked_for_json_in_words() {
    let body = said(anthropic, asking(wishes())).await;
    assert_eq!(
        body,
        json!({
            "max_tokens": 16384, "thinking": {"type": "adaptive"}, "service_tier": "auto",
            "metadata": {"user_id": "user-1"}, "output_config": {"effort": "low"},
            "system": [{"type": "text", "text": "Answer with a JSON object only.",
                "cache_control": {"type": "ephemeral"}}],
        })
    );
    for (tier, expected) in [
        ("auto", json!("auto")),
        ("default", json!("standard_only")),
        ("flex", Value::Null),
    ] {
        let options = ModelOptions {
            service_tier: Some(tier.into()),
            stream: Streaming::Whole,
            ..ModelOptions::default()
        };
        let body = said(anthropic, asking(options)).await;
        let found = body.get("service_tier").cloned();
        assert_eq!(found.unwrap_or_default(), expected, "{tier}");
    }
}

#[tokio::test]
async fn ollama_has_its_names() {
    assert_eq!(
        said(ollama, asking(wishes())).await,
        json!({
            "format": "json", "logprobs": true, "top_logprobs": 3, "think": "low",
            "options": {"presence_penalty": 0.5, "frequency_penalty": -0.5}, "stream": false,
        })
    );
}

#[tokio::test]
async fn nothing_is_said_where_nothing_is_wished() {
    let silent = || {
        asking(ModelOptions {
            stream: Streaming::Whole,
            ..ModelOptions::default()
        })
    };
    let as_openai = |server: &ScriptedServer| {
        chat(server).quirks(ChatQuirks {
            server: Some(ChatServer::Openai),
            ..ChatQuirks::default()
        })
    };
    assert_eq!(said(as_openai, silent()).await, json!({}));
    assert_eq!(said(responses, silent()).await, json!({"store": false}));
    assert_eq!(
        said(anthropic, silent()).await,
        json!({"max_tokens": 16384})
    );
    assert_eq!(said(ollama, silent()).await, json!({"stream": false}));
}

#[tokio::test]
async fn json_is_asked_for_in_words_where_a_member_would_hinder_calls_and_not_beside_a_schema() {
    let words = "Be kind.\n\nAnswer with a JSON object only.";
    let options = ModelOptions {
        json_object: true,
        ..ModelOptions::default()
    };
    let with_tools = ModelRequest {
        instructions: Some("Be kind.".into()),
        tools: common::conversation::tools(),
        tool_choice: Some(ToolChoice::Auto),
        ..asking(options.clone())
    };
    let body = sent(chat, with_tools.clone()).await;
    assert_eq!(body["messages"][0]["content"], json!(words));
    assert!(body.get("response_format").is_none());
    let body = sent(ollama, with_tools.clone()).await;
    assert_eq!(body["messages"][0]["content"], json!(words));
    assert!(body.get("format").is_none());
    let loose = |server: &ScriptedServer| {
        responses(server).with_capabilities(CapabilityOverrides {
            structured_output: Some(false),
            ..CapabilityOverrides::default()
        })
    };
    let body = sent(loose, with_tools).await;
    assert_eq!(body["instructions"], json!(words));
    assert!(body.get("text").is_none());
    let bound = ModelRequest {
        output_format: Some(OutputFormat {
            name: "a".into(),
            schema: std::sync::Arc::new(json!({"type": "object"})),
            strict: false,
        }),
        ..asking(options)
    };
    let body = sent(chat, bound.clone()).await;
    assert_eq!(body["response_format"]["type"], json!("json_schema"));
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);
    let body = sent(responses, bound).await;
    assert_eq!(body["text"]["format"]["type"], json!("json_schema"));
}

fn likelihoods() -> Value {
    json!([
        {"token": "He", "logprob": -0.25, "bytes": [72, 101],
            "top_logprobs": [{"token": "Hi", "logprob": -1.5, "bytes": [72, 105]}]},
        {"token": "y", "logprob": -0.5, "bytes": [121], "top_logprobs": []},
    ])
}

/// A step whose text bears likelihoods.
fn weighed() -> Step {
    let mut extra = Map::new();
    extra.insert("logprobs".into(), likelihoods());
    let part = ContentPart::OutputText {
        text: "Hey".into(),
        annotations: Vec::new(),
        extra,
    };
    Step::default().item(Item::Message(Message {
        content: vec![part],
        ..Message::new(Role::Assistant, "")
    }))
}

fn found(items: &[Item]) -> Value {
    let json = serde_json::to_value(items).unwrap();
    json[0]["content"][0]["logprobs"].clone()
}

#[tokio::test]
async fn likelihoods_come_back_in_one_form_streamed_or_whole() {
    for stream in [Streaming::Pieces, Streaming::Whole] {
        let options = ModelOptions {
            top_logprobs: Some(1),
            stream,
            ..ModelOptions::default()
        };
        let server = ScriptedServer::start([weighed(), weighed(), say("plain")])
            .await
            .unwrap();
        for model in [
            Box::new(chat(&server)) as Box<dyn Model>,
            Box::new(responses(&server)),
        ] {
            let answer = answer_of(&*model, asking(options.clone())).await.unwrap();
            assert_eq!(found(&answer.items), likelihoods(), "{stream:?}");
        }
        let plain = answer_of(&chat(&server), asking(options)).await.unwrap();
        assert_eq!(found(&plain.items), Value::Null);
    }
}

#[tokio::test]
async fn likelihoods_of_thoughts_are_not_those_of_the_text() {
    let chunk = |delta: Value, token: &str| {
        let logprobs = json!({"content": [{"token": token, "logprob": -1.0}]});
        let choice = json!({"index": 0, "delta": delta, "logprobs": logprobs});
        format!("data: {}\n\n", json!({"choices": [choice]}))
    };
    let stream = [
        chunk(json!({"reasoning_content": "hm", "content": null}), "hm"),
        chunk(json!({"content": ""}), "H"),
        chunk(json!({"content": "Hi"}), "i"),
        "data: [DONE]\n\n".to_owned(),
    ];
    let server = Server::start([Reply::sse(&stream.concat())]).await;
    let model = OpenAiChat::new("m").base_url(&server.url);
    let answer = answer_of(&model, ModelRequest::default()).await.unwrap();
    let likelihoods = found(&answer.items[1..]);
    let tokens: Vec<_> = likelihoods.as_array().unwrap().iter().collect();
    assert_eq!(tokens.len(), 2);
    assert_eq!(
        tokens[0],
        &json!({"token": "H", "logprob": -1.0, "bytes": [72], "top_logprobs": []})
    );
}

#[tokio::test]
async fn likelihoods_of_ollama_come_back_in_the_same_form() {
    let lines = concat!(
        r#"{"message":{"content":"He"},"logprobs":[{"token":"He","logprob":-0.25,"top_logprobs":[{"token":"Hi","logprob":-1.5}]}],"done":false}"#,
        "\n",
        r#"{"message":{"content":"y"},"logprobs":[{"token":"y","logprob":-0.5}],"done":false}"#,
        "\n",
        r#"{"message":{"content":""},"done":true,"done_reason":"stop"}"#,
        "\n",
    );
    let server = Server::start([Reply::ndjson(lines)]).await;
    let model = Ollama::new("m").base_url(&server.url);
    let answer = answer_of(&model, ModelRequest::default()).await.unwrap();
    assert_eq!(found(&answer.items), likelihoods());
}

#[tokio::test]
async fn what_was_written_to_a_cache_is_counted() {
    let step = || -> Step {
        serde_json::from_value(json!({"text": "hi", "usage": {"input_tokens": 30,
            "output_tokens": 2, "cached_input_tokens": 10, "cache_write_tokens": 5}}))
        .unwrap()
    };
    let server = ScriptedServer::start([step(), step()]).await.unwrap();
    for model in [
        Box::new(responses(&server)) as Box<dyn Model>,
        Box::new(anthropic(&server)),
    ] {
        let usage = answer_of(&*model, asking(ModelOptions::default()))
            .await
            .unwrap()
            .usage
            .unwrap();
        assert_eq!(
            (
                usage.input_tokens,
                usage.cached_input_tokens,
                usage.cache_write_tokens
            ),
            (30, 10, 5)
        );
    }
}

/// Each option alone, with its name.
fn options_alone() -> [(&'static str, ModelOptions); 9] {
    let alone = |set: fn(&mut ModelOptions)| {
        let mut options = ModelOptions {
            stream: Streaming::Whole,
            ..ModelOptions::default()
        };
        set(&mut options);
        options
    };
    [
        ("temperature", alone(|it| it.temperature = Some(0.5))),
        ("top_p", alone(|it| it.top_p = Some(0.5))),
        (
            "reasoning_effort",
            alone(|it| it.reasoning_effort = Some("low".into())),
        ),
        ("verbosity", alone(|it| it.verbosity = Some("low".into()))),
        (
            "presence_penalty",
            alone(|it| it.presence_penalty = Some(1.0)),
        ),
        ("top_logprobs", alone(|it| it.top_logprobs = Some(2))),
        (
            "safety_identifier",
            alone(|it| it.safety_identifier = Some("u".into())),
        ),
        (
            "prompt_cache_key",
            alone(|it| it.prompt_cache_key = Some("k".into())),
        ),
        (
            "service_tier",
            alone(|it| it.service_tier = Some("flex".into())),
        ),
    ]
}

/// Whether each option changes the request or is named as ignored, and never both.
async fn check_sent_or_ignored<M: Model>(model: impl Fn(&ScriptedServer) -> M + Copy) {
    let none = ModelOptions {
        stream: Streaming::Whole,
        ..ModelOptions::default()
    };
    let without = said(model, asking(none)).await;
    for (name, options) in options_alone() {
        let server = ScriptedServer::start([say("{}")]).await.unwrap();
        let model_here = model(&server);
        let ignored = model_here.ignored_options(&options);
        let is_sent = said(model, asking(options)).await != without;
        let provider = model_here.provider();
        if is_sent {
            assert!(
                ignored.is_empty(),
                "{provider} is sent `{name}`: {ignored:?}"
            );
        } else {
            assert_eq!(ignored, [name], "{provider} is not sent `{name}`");
        }
    }
}

#[tokio::test]
async fn every_option_is_sent_or_named_as_ignored() {
    check_sent_or_ignored(chat).await;
    check_sent_or_ignored(|server| {
        chat(server).quirks(ChatQuirks {
            openai_members: Some(true),
            ..ChatQuirks::default()
        })
    })
    .await;
    check_sent_or_ignored(responses).await;
    check_sent_or_ignored(anthropic).await;
    check_sent_or_ignored(ollama).await;
    // A model that thinks takes no temperature.
    let server = ScriptedServer::start([say("{}")]).await.unwrap();
    let options = ModelOptions {
        temperature: Some(0.5),
        reasoning_effort: Some("low".into()),
        ..ModelOptions::default()
    };
    assert_eq!(
        anthropic(&server).ignored_options(&options),
        ["temperature"]
    );
}

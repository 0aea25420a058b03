//! What is sent.

use std::sync::Arc;

use haft_core::{
    AllowedMode, AllowedTools, Item, Model as _, ModelRequest, OutputFormat, Streaming, ToolChoice,
    ToolDefinition, ToolSpecs,
};
use haft_models::{CapabilityOverrides, ChatQuirks, ChatServer, OpenAiChat};
use insta::assert_json_snapshot;
use serde_json::{Value, json};

use crate::common::conversation::{
    conversation, conversation_with_image_output, request, tools, unknown_item,
};
use crate::common::events::answer_of;
use crate::common::server::{Reply, Server};
use crate::model;

fn done() -> Reply {
    Reply::json(
        200,
        json!({"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}),
    )
}

/// The bytes that a request becomes, for a model that takes images.
async fn sent_bytes(make: impl FnOnce(OpenAiChat) -> OpenAiChat, request: ModelRequest) -> Vec<u8> {
    let server = Server::start([done()]).await;
    let seeing = CapabilityOverrides {
        image_input: Some(true),
        ..CapabilityOverrides::default()
    };
    let model = model(&server).with_capabilities(seeing);
    answer_of(&make(model), request).await.unwrap();
    server.request().body
}

async fn sent(make: impl FnOnce(OpenAiChat) -> OpenAiChat, request: ModelRequest) -> Value {
    serde_json::from_slice(&sent_bytes(make, request).await).unwrap()
}

fn as_openai(model: OpenAiChat) -> OpenAiChat {
    model.quirks(server(ChatServer::Openai))
}

fn server(server: ChatServer) -> ChatQuirks {
    ChatQuirks {
        server: Some(server),
        ..ChatQuirks::default()
    }
}

fn plain(model: OpenAiChat) -> OpenAiChat {
    model
}

#[tokio::test]
async fn the_whole_conversation_as_openai_takes_it() {
    let mut request = request();
    request.parallel_tool_calls = Some(true);
    request.options.max_output_tokens = Some(500);
    request.options.temperature = Some(0.5);
    request.options.reasoning_effort = Some("low".into());
    assert_json_snapshot!(sent(as_openai, request).await);
}

#[tokio::test]
async fn the_whole_conversation_as_any_server_takes_it() {
    let mut request = request();
    request.parallel_tool_calls = Some(true);
    request.options.max_output_tokens = Some(500);
    request.options.stream = Streaming::Whole;
    assert_json_snapshot!(sent(plain, request).await);
}

#[tokio::test]
async fn images_in_an_output_follow_in_the_users_name() {
    let mut request = request();
    request.conversation = conversation_with_image_output();
    request.tools = ToolSpecs::default();
    let body = sent(as_openai, request.clone()).await;
    let messages = body["messages"].as_array().unwrap();
    assert_json_snapshot!(messages[messages.len() - 3..]);
    // The question is only about what tools gave.
    let entries = request.conversation.entries().iter().skip(1);
    request.conversation = entries.map(|entry| entry.item().clone()).collect();
    let blind = |model: OpenAiChat| {
        model.with_capabilities(CapabilityOverrides {
            image_input: Some(false),
            ..CapabilityOverrides::default()
        })
    };
    let body = sent(blind, request).await;
    let last = body["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&last["role"], &last["content"]),
        (&json!("tool"), &json!("The map:\n\n[image]")),
        "a model that does not take images is told that there is one"
    );
}

#[tokio::test]
async fn the_same_request_has_the_same_bytes() {
    let first = sent_bytes(plain, request()).await;
    assert_eq!(first, sent_bytes(plain, request()).await);
    let mut longer = request();
    longer.conversation.push(Item::assistant("By train."));
    longer.conversation.push(Item::user("Thanks."));
    let second = sent_bytes(plain, longer).await;
    let end = first
        .windows(10)
        .position(|window| window == b"],\"tools\":")
        .unwrap();
    assert!(
        second.starts_with(&first[..end]),
        "a longer conversation only appends"
    );
}

#[tokio::test]
async fn only_what_was_asked_for_is_sent() {
    let request = ModelRequest {
        conversation: "hi".into(),
        tool_choice: Some(ToolChoice::Required),
        parallel_tool_calls: Some(false),
        ..ModelRequest::default()
    };
    let mut whole = request.clone();
    whole.options.stream = Streaming::Whole;
    let messages = json!([{"role": "user", "content": "hi"}]);
    assert_eq!(
        sent(plain, whole).await,
        json!({"model": "test-model", "messages": messages})
    );
    let quiet = |model: OpenAiChat| {
        model.quirks(ChatQuirks {
            stream_usage: Some(false),
            ..ChatQuirks::default()
        })
    };
    assert_eq!(
        sent(quiet, request.clone()).await,
        json!({"model": "test-model", "messages": messages, "stream": true})
    );
    assert_eq!(
        sent(plain, request).await["stream_options"],
        json!({"include_usage": true})
    );
}

#[tokio::test]
async fn every_choice_is_lowered_to_what_the_server_takes() {
    let allowed = |mode| {
        ToolChoice::Allowed(AllowedTools {
            mode,
            names: vec!["draw_map".into()],
        })
    };
    let named = || ToolChoice::Function("find_route".into());
    let openai = ChatServer::Openai;
    let llama = ChatServer::LlamaCpp;
    for (at, choice, tools_sent, expected) in [
        (openai, ToolChoice::Auto, 3, json!("auto")),
        (openai, ToolChoice::Required, 3, json!("required")),
        (openai, ToolChoice::None, 3, json!("none")),
        (
            openai,
            named(),
            3,
            json!({"type": "function", "function": {"name": "find_route"}}),
        ),
        (openai, allowed(AllowedMode::Auto), 3, json!("auto")),
        (
            openai,
            allowed(AllowedMode::Required),
            3,
            json!({"type": "function", "function": {"name": "draw_map"}}),
        ),
        (
            ChatServer::Other,
            allowed(AllowedMode::Required),
            3,
            json!({"type": "function", "function": {"name": "draw_map"}}),
        ),
        (llama, allowed(AllowedMode::Required), 3, json!("required")),
        (openai, allowed(AllowedMode::None), 3, json!("none")),
        (llama, ToolChoice::Auto, 3, json!("auto")),
        (llama, ToolChoice::Required, 3, json!("required")),
        (llama, ToolChoice::None, 0, Value::Null),
        (llama, named(), 1, json!("required")),
        (llama, allowed(AllowedMode::Auto), 3, json!("auto")),
        (llama, allowed(AllowedMode::None), 0, Value::Null),
        (
            ChatServer::Vllm,
            named(),
            3,
            json!({"type": "function", "function": {"name": "find_route"}}),
        ),
    ] {
        let mut request = request();
        request.tool_choice = Some(choice.clone());
        let body = sent(|model| model.quirks(server(at)), request).await;
        assert_eq!(
            body.get("tools")
                .map_or(0, |tools| tools.as_array().unwrap().len()),
            tools_sent
        );
        assert_eq!(body["tool_choice"], expected, "{at:?} {choice:?}");
        if at == llama && choice == named() {
            assert_eq!(body["tools"][0]["function"]["name"], "find_route");
        }
    }
}

#[tokio::test]
async fn a_bad_tool_is_left_out_alone_and_told() {
    let bad = ToolDefinition::builder("bad")
        .parameters(json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/gone"}}}))
        .build()
        .unwrap();
    let mut specs: Vec<_> = tools().iter().cloned().collect();
    specs.insert(1, haft_core::ToolSpec::new(bad));
    let mut request = request();
    request.tools = ToolSpecs::new(specs);
    let body = sent(plain, request.clone()).await;
    let names: Vec<_> = body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["function"]["name"])
        .collect();
    assert_eq!(names, ["get_weather", "find_route", "draw_map"]);
    let left_out = OpenAiChat::new("m").left_out(&request);
    assert_eq!(left_out.len(), 1);
    assert_eq!(left_out[0].name, "bad");
    request.tool_choice = Some(ToolChoice::Function("bad".into()));
    let server = Server::start([done()]).await;
    let error = answer_of(&model(&server), request).await.unwrap_err();
    assert!(error.message.contains("`bad` is left out"), "{error}");
    assert!(server.requests().is_empty(), "nothing is sent");
}

#[tokio::test]
async fn an_answer_can_be_bound_to_a_schema() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}},
        "required": ["a"], "additionalProperties": false});
    let mut request = request();
    request.output_format = Some(OutputFormat {
        name: "answer".into(),
        schema: Arc::new(schema.clone()),
        strict: true,
    });
    let format = |body: Value| body["response_format"].clone();
    assert_eq!(
        format(sent(as_openai, request.clone()).await),
        json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": true}})
    );
    assert_eq!(
        format(sent(plain, request).await),
        json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}})
    );
}

#[tokio::test]
async fn items_of_other_protocols_are_left_out() {
    let mut request = request();
    request.conversation = [unknown_item(), Item::user("hi")].into_iter().collect();
    request.instructions = None;
    assert_eq!(
        sent(plain, request).await["messages"],
        json!([{"role": "user", "content": "hi"}])
    );
}

#[tokio::test]
async fn the_host_speaks_as_system_or_as_developer() {
    let mut request = request();
    request.conversation = [Item::developer("Mind the gap."), Item::user("hi")]
        .into_iter()
        .collect();
    let roles = |body: Value| {
        let messages = body["messages"].as_array().unwrap().clone();
        messages
            .iter()
            .map(|message| message["role"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        roles(sent(plain, request.clone()).await),
        ["system", "system", "user"]
    );
    let developer = |model: OpenAiChat| {
        model.quirks(ChatQuirks {
            developer_role: true,
            ..ChatQuirks::default()
        })
    };
    assert_eq!(
        roles(sent(developer, request).await),
        ["developer", "developer", "user"]
    );
}

#[tokio::test]
async fn thoughts_go_back_under_the_name_they_came_with() {
    let reply = Reply::json(
        200,
        json!({"choices": [{"finish_reason": "tool_calls", "message": {
        "reasoning_content": "A \"map\" helps.", "content": null,
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "draw_map", "arguments": "{}"}}]}}]}),
    );
    let server = Server::start([reply, done()]).await;
    let model = model(&server);
    let mut request = request();
    request.conversation = "Draw.".into();
    let answer = answer_of(&model, request.clone()).await.unwrap();
    assert_eq!(answer.items.len(), 2);
    request.conversation.extend(answer.items);
    request
        .conversation
        .push(Item::function_call_output("call_1", "done"));
    answer_of(&model, request).await.unwrap();
    assert_eq!(
        server.requests()[1].json()["messages"][2],
        json!({"role": "assistant", "content": null, "reasoning_content": "A \"map\" helps.",
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "draw_map", "arguments": "{}"}}]})
    );
}

#[tokio::test]
async fn members_that_only_one_provider_knows_are_added() {
    let mut request = request();
    request.conversation = conversation();
    let extra = json!({"top_k": 5, "seed": 1});
    request.options.extra = json!({"seed": 2}).as_object().unwrap().clone();
    let body = sent(
        |model| model.extra(extra.as_object().unwrap().clone()),
        request,
    )
    .await;
    assert_eq!((&body["top_k"], &body["seed"]), (&json!(5), &json!(2)));
}

#[test]
fn openai_itself_is_recognised_by_its_address() {
    let strict = |model: OpenAiChat| model.capabilities().strict_schemas;
    assert!(strict(OpenAiChat::new("m")));
    assert!(strict(
        OpenAiChat::new("m").base_url("https://api.openai.com/v1/")
    ));
    assert!(!strict(
        OpenAiChat::new("m").base_url("https://api.openai.com.evil.example/v1")
    ));
    assert!(!strict(
        OpenAiChat::new("m").base_url("http://localhost:8000/v1")
    ));
}

#[tokio::test]
async fn past_arguments_that_are_no_object_do_not_spoil_the_request() {
    let mut request = request();
    let written = [
        "{\"a\": 1 }",
        "{\"a\": \"cut",
        "",
        "null",
        "[1]",
        "{} and more",
    ];
    for (place, arguments) in written.iter().enumerate() {
        let id = format!("call_{place}");
        request
            .conversation
            .push(Item::function_call(&id, "draw_map", *arguments));
        request
            .conversation
            .push(Item::function_call_output(&id, "…"));
    }
    let arguments = |body: Value| {
        let messages = body["messages"].as_array().unwrap().clone();
        let calls = messages
            .iter()
            .filter_map(|message| message.get("tool_calls"));
        let all = calls.map(|calls| {
            calls[0]["function"]["arguments"]
                .as_str()
                .unwrap()
                .to_owned()
        });
        all.skip(1).collect::<Vec<_>>()
    };
    assert_eq!(
        arguments(sent(plain, request.clone()).await),
        ["{\"a\": 1 }", "{}", "{}", "{}", "{}", "{}"]
    );
    assert_eq!(
        arguments(sent(as_openai, request).await),
        [
            "{\"a\": 1 }",
            "{\"a\": \"cut",
            "{}",
            "null",
            "[1]",
            "{} and more"
        ]
    );
}

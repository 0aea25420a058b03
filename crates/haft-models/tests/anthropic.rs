//! What the adapter to Anthropic's Messages API promises, over HTTP.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod playing;

use common::conversation;
use common::server::{Ending, Reply, Server};
use haft_core::{
    FinishReason, Item, ItemStatus, Model as _, ModelErrorKind, ModelRequest, Streaming,
    ToolChoice, ToolDefinition, ToolSpecs,
};
use haft_models::http::Http;
use haft_models::{Adapter, Anthropic, AnthropicOptions, ModelConfig, Thinking, from_config_with};
use playing::{Played, chunkings, play};
use serde_json::json;

const SHORT: &str = "event: message_start\n\
    data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"claude-x\",\"usage\":{\"input_tokens\":5}}}\n\n\
    data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
    data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Größe\"}}\r\n\r\n\
    data: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
    data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n\
    data: {\"type\":\"message_stop\"}\n\n";

const LONG: &str = include_str!("streams/anthropic_tools.sse");

fn model(server: &Server) -> Anthropic {
    Anthropic::new("claude-x")
        .base_url(&server.url)
        .api_key("sk-ant-hunter22")
}

async fn played(reply: Reply, request: ModelRequest) -> Played {
    let server = Server::start([reply]).await;
    play(&model(&server), request).await
}

#[tokio::test]
async fn the_shared_conversation_is_sent_as_the_api_wants_it() {
    let server = Server::start([Reply::sse(SHORT)]).await;
    let mut request = ModelRequest {
        conversation: conversation::conversation_with_image_output(),
        tool_choice: Some(ToolChoice::Auto),
        parallel_tool_calls: Some(false),
        ..conversation::request()
    };
    request.conversation.push(conversation::unknown_item());
    play(&model(&server), request).await.response();
    let request = server.request();
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", "/v1/messages")
    );
    assert_eq!(request.header("x-api-key"), Some("sk-ant-hunter22"));
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(request.header("authorization"), None);
    insta::assert_json_snapshot!(request.json());
}

#[tokio::test]
async fn a_version_in_the_address_is_not_repeated() {
    let server = Server::start([Reply::sse(SHORT)]).await;
    let model = model(&server).base_url(&format!("{}/v1/", server.url));
    play(&model, ModelRequest::default()).await.response();
    assert_eq!(server.request().path, "/v1/messages");
}

#[tokio::test]
async fn an_answer_with_thoughts_text_and_calls_is_lifted() {
    let played = played(Reply::sse(LONG), conversation::request()).await;
    insta::assert_debug_snapshot!(played.events);
    let response = played.response();
    assert_eq!(response.finish, FinishReason::Normal);
    let usage = response.usage.unwrap();
    assert_eq!(
        (usage.input_tokens, usage.cached_input_tokens),
        (2_679, 2_048)
    );
}

#[tokio::test]
async fn every_byte_boundary_gives_the_same_events() {
    let cuts = (0..SHORT.len()).map(|at| Reply::sse(SHORT).cut_at(&[at]));
    playing::all_alike(cuts, |server| Box::new(model(server))).await;
}

#[tokio::test]
async fn any_chunking_gives_the_same_events() {
    for seed in 0..12 {
        eprintln!("seed {seed}");
        let replies = chunkings(seed, LONG.len()).map(|cuts| Reply::sse(LONG).cut_at(&cuts));
        playing::all_alike(replies, |server| Box::new(model(server))).await;
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_before_the_model_says_why_it_stopped_is_an_error() {
    let frames: Vec<_> = SHORT.match_indices("data:").map(|(at, _)| at).collect();
    for ending in [Ending::Clean, Ending::Broken] {
        // Behind the last but one there is only the mark of the end.
        for at in &frames[1..frames.len() - 1] {
            let reply = Reply::sse(&SHORT[..*at]).ending(ending);
            let played = played(reply, ModelRequest::default()).await;
            let error = played.error.expect("an error");
            assert_eq!(
                error.kind,
                ModelErrorKind::Unreachable,
                "{ending:?} at {at}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn thoughts_and_calls_go_back_as_the_blocks_that_they_were() {
    let server = Server::start([Reply::sse(LONG), Reply::sse(SHORT)]).await;
    let model = model(&server);
    let mut request = conversation::request();
    request.conversation = "How is Bergen?".into();
    let answer = play(&model, request.clone()).await.response();
    request.conversation.extend(answer.items);
    for id in ["toolu_b", "toolu_a"] {
        request
            .conversation
            .push(Item::function_call_output(id, "ok"));
    }
    play(&model, request).await.response();
    let body = server.requests()[1].json();
    insta::assert_json_snapshot!(body["messages"]);
}

#[tokio::test]
async fn a_whole_answer_gives_events_too() {
    let body = json!({"id": "msg_1", "model": "claude-x", "content": [
        {"type": "text", "text": "Hey"},
        {"type": "tool_use", "id": "t", "name": "get_weather", "input": {"city": "Oslo"}}],
        "stop_reason": "max_tokens", "usage": {"input_tokens": 1, "output_tokens": 2}});
    let server = Server::start([Reply::json(200, body)]).await;
    let mut request = conversation::request();
    request.options.stream = Streaming::Whole;
    let response = play(&model(&server), request).await.response();
    assert_eq!(response.finish, FinishReason::Length);
    let Item::FunctionCall(call) = &response.items[1] else {
        panic!("{response:?}")
    };
    assert_eq!(call.arguments, r#"{"city":"Oslo"}"#);
    assert_eq!(call.status, Some(ItemStatus::Incomplete));
    assert_eq!(server.request().json().get("stream"), None);
}

#[tokio::test]
async fn renamed_keys_come_back_under_their_names() {
    let tool = ToolDefinition::builder("measure")
        .parameters(json!({"type": "object", "properties": {"größe in cm": {"type": "integer"}}}))
        .build()
        .unwrap();
    let tools: ToolSpecs = [tool].into_iter().collect();
    let probe = Server::start([Reply::sse(SHORT)]).await;
    let request = ModelRequest {
        tools,
        ..ModelRequest::default()
    };
    play(&model(&probe), request.clone()).await.response();
    let schema = probe.request().json()["tools"][0]["input_schema"].clone();
    let key = schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap()
        .clone();
    assert!(
        key.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
    );
    let answer = json!({"content": [
        {"type": "tool_use", "id": "t", "name": "measure", "input": {key: 180}}],
        "stop_reason": "tool_use"});
    let played = played(Reply::json(200, answer), request).await;
    let expected = Item::function_call("t", "measure", r#"{"größe in cm":180}"#);
    assert_eq!(played.response().items, [expected]);
}

#[tokio::test]
async fn refusals_bear_their_kind_and_never_the_key() {
    let refusal = |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}});
    for (reply, kind) in [
        (
            Reply::json(529, refusal("overloaded_error", "Overloaded")),
            ModelErrorKind::ServerError,
        ),
        (
            Reply::json(
                401,
                refusal("authentication_error", "bad key sk-ant-hunter22"),
            ),
            ModelErrorKind::Unauthorized,
        ),
        (
            Reply::json(429, refusal("rate_limit_error", "slow down")),
            ModelErrorKind::RateLimit,
        ),
        (
            Reply::json(
                400,
                refusal("invalid_request_error", "prompt is too long: 9 > 8"),
            ),
            ModelErrorKind::ContextLength,
        ),
        (
            Reply::json(400, refusal("invalid_request_error", "messages: no")),
            ModelErrorKind::InvalidRequest,
        ),
    ] {
        let status = reply.status;
        let error = played(reply, ModelRequest::default()).await.error.unwrap();
        assert_eq!((error.kind, error.status), (kind, Some(status)), "{error}");
        assert!(!format!("{error:?}").contains("hunter22"), "{error:?}");
    }
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\
         \"message\":\"Overloaded, sk-ant-hunter22\"}}\n\n";
    let error = played(Reply::sse(overloaded), ModelRequest::default())
        .await
        .error
        .unwrap();
    assert_eq!(error.kind, ModelErrorKind::ServerError);
    assert!(!error.message.contains("hunter22"), "{error}");
}

#[tokio::test]
async fn a_later_request_repeats_the_earlier_one() {
    let server = Server::start([Reply::sse(SHORT)]).await;
    let model = model(&server).caching(false);
    let mut request = conversation::request();
    play(&model, request.clone()).await.response();
    request.conversation.push(Item::assistant("more"));
    play(&model, request).await.response();
    let [first, second] = [0, 1].map(|at| server.requests()[at].body.clone());
    assert!(second.starts_with(first.strip_suffix(b"]}").unwrap()));
}

#[tokio::test]
async fn a_budget_of_thoughts_is_for_older_models() {
    let server = Server::start([Reply::sse(SHORT)]).await;
    let model = model(&server).thinking(Thinking::Budget).max_tokens(2_000);
    let mut request = ModelRequest::default();
    request.options.reasoning_effort = Some("low".into());
    play(&model, request).await.response();
    let body = server.request().json();
    assert_eq!(
        body["thinking"],
        json!({"type": "enabled", "budget_tokens": 4_096})
    );
    assert_eq!(body["max_tokens"], json!(6_096));
}

#[test]
fn variables_give_key_and_address() {
    let missing = Anthropic::from_env_with("claude-x", &|_| None).unwrap_err();
    assert!(
        missing.to_string().contains("`ANTHROPIC_API_KEY`"),
        "{missing}"
    );
    let variables = |name: &str| match name {
        "ANTHROPIC_API_KEY" => Some("sk-ant-hunter22".into()),
        "ANTHROPIC_BASE_URL" => Some("not an address".into()),
        _ => None,
    };
    let error = Anthropic::from_env_with("claude-x", &variables).unwrap_err();
    assert!(!error.to_string().contains("hunter22"), "{error}");
}

#[test]
fn what_it_can_do_is_declared() {
    let capabilities = Anthropic::new("claude-x")
        .context_tokens(200_000)
        .capabilities();
    insta::assert_debug_snapshot!(capabilities);
}

#[tokio::test]
async fn an_entry_of_a_file_makes_the_model() {
    let server = Server::start([Reply::sse(SHORT)]).await;
    let entry = json!({"name": "fast", "adapter": "anthropic", "model": "claude-x",
        "base_url": server.url, "api_key_env": "KEY", "context_tokens": 9,
        "extra": {"top_k": 5}, "headers": {"anthropic-beta": "b"},
        "anthropic": {"max_tokens": 77, "caching": false, "thinking": "budget"}});
    let config: ModelConfig = serde_json::from_value(entry).unwrap();
    let variables = |name: &str| (name == "KEY").then(|| "sk-ant-hunter22".into());
    let model = from_config_with(&config, &variables, &Http::default()).unwrap();
    assert_eq!((model.name(), model.provider()), ("claude-x", "anthropic"));
    assert_eq!(model.capabilities().context_tokens, Some(9));
    let request = ModelRequest {
        conversation: "hi".into(),
        ..ModelRequest::default()
    };
    play(&*model, request).await.response();
    let request = server.request();
    assert_eq!(request.header("x-api-key"), Some("sk-ant-hunter22"));
    assert_eq!(request.header("anthropic-beta"), Some("b"));
    assert_eq!(
        request.json(),
        json!({"model": "claude-x", "max_tokens": 77, "stream": true, "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]}], "top_k": 5})
    );
    let mut wrong = ModelConfig::new("fast", Adapter::Ollama);
    wrong.anthropic = Some(AnthropicOptions::default());
    let error = from_config_with(&wrong, &variables, &Http::default())
        .err()
        .unwrap();
    assert!(error.to_string().contains("`anthropic`"), "{error}");
}

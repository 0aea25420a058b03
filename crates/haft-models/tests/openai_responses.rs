//! What the adapter to `OpenAI`'s Responses API promises, over HTTP.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod playing;

use common::conversation;
use common::server::{Ending, Reply, Server};
use haft_core::{
    FinishReason, Item, Model as _, ModelErrorKind, ModelRequest, Streaming, ToolChoice,
};
use haft_models::http::Http;
use haft_models::{CapabilityOverrides, ModelConfig, OpenAiResponses, from_config_with};
use playing::{Played, chunkings, play};
use serde_json::json;

const SHORT: &str = "event: response.created\n\
    data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"model\":\"gpt-x\"}}\n\n\
    data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"assistant\",\"content\":[]}}\n\n\
    data: {\"type\":\"response.output_text.delta\",\"item_id\":\"msg_1\",\"delta\":\"Größe\"}\r\n\r\n\
    data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[],\"usage\":{\"input_tokens\":5,\"output_tokens\":2}}}\n\n";

const LONG: &str = include_str!("streams/responses_tools.sse");

fn model(server: &Server) -> OpenAiResponses {
    OpenAiResponses::new("gpt-x")
        .base_url(&format!("{}/v1", server.url))
        .api_key("sk-hunter22")
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
        tool_choice: Some(ToolChoice::allowed(["get_weather", "draw_map"])),
        parallel_tool_calls: Some(false),
        ..conversation::request()
    };
    request.conversation.push(conversation::unknown_item());
    request.options.reasoning_effort = Some("low".into());
    play(&model(&server), request).await.response();
    let request = server.request();
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", "/v1/responses")
    );
    assert_eq!(request.header("authorization"), Some("Bearer sk-hunter22"));
    insta::assert_json_snapshot!(request.json());
}

#[tokio::test]
async fn an_answer_with_thoughts_text_and_calls_is_lifted() {
    let played = played(Reply::sse(LONG), conversation::request()).await;
    insta::assert_debug_snapshot!(played.events);
    let response = played.response();
    assert_eq!(response.finish, FinishReason::Normal);
    let usage = response.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.reasoning_tokens), (2_679, 40));
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
async fn a_stream_that_breaks_off_anywhere_is_an_error() {
    let frames: Vec<_> = SHORT.match_indices("data:").map(|(at, _)| at).collect();
    for ending in [Ending::Clean, Ending::Broken] {
        for at in &frames[1..] {
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
async fn an_answer_goes_back_with_what_only_the_provider_can_read() {
    let server = Server::start([Reply::sse(LONG), Reply::sse(SHORT)]).await;
    let model = model(&server);
    let mut request = conversation::request();
    request.conversation = "How is Bergen?".into();
    let answer = play(&model, request.clone()).await.response();
    request.conversation.extend(answer.items);
    for id in ["call_a", "call_b"] {
        request
            .conversation
            .push(Item::function_call_output(id, "ok"));
    }
    play(&model, request).await.response();
    let [first, second] = [0, 1].map(|at| server.requests()[at].body.clone());
    assert!(
        second.starts_with(first.strip_suffix(b"]}").unwrap()),
        "the later repeats the earlier"
    );
    insta::assert_json_snapshot!(server.requests()[1].json()["input"]);
}

#[tokio::test]
async fn what_is_sealed_goes_back_under_the_id_that_it_was_sealed_for() {
    let stream = "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"id\":\"rs_begun\",\"summary\":[]}}\n\n\
        data: {\"type\":\"response.reasoning_summary_text.delta\",\"item_id\":\"rs_begun\",\"summary_index\":0,\"delta\":\"hm\"}\n\n\
        data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"id\":\"rs_done\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"hm\"}],\"encrypted_content\":\"gAAA\"}}\n\n\
        data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n";
    let server = Server::start([Reply::sse(stream), Reply::sse(SHORT)]).await;
    let model = model(&server);
    let played = play(&model, ModelRequest::default()).await;
    let begun = played.events.iter().find_map(|event| match event {
        haft_core::ModelEvent::ItemStarted { id, .. } => id.clone(),
        _ => None,
    });
    assert_eq!(begun.as_deref(), Some("rs_begun"));
    let items = played.response().items;
    assert_eq!(items[0].id(), Some("rs_begun"));
    let request = ModelRequest {
        conversation: items.into(),
        ..ModelRequest::default()
    };
    play(&model, request).await.response();
    assert_eq!(
        server.requests()[1].json()["input"],
        json!([{"type": "reasoning", "id": "rs_done",
            "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "gAAA"}])
    );
}

#[tokio::test]
async fn a_whole_answer_gives_events_too() {
    let body = json!({"id": "resp_1", "status": "incomplete", "output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hey"}]}],
        "incomplete_details": {"reason": "max_output_tokens"}});
    let server = Server::start([Reply::json(200, body)]).await;
    let mut request = conversation::request();
    request.options.stream = Streaming::Whole;
    let response = play(&model(&server), request).await.response();
    assert_eq!(response.finish, FinishReason::Length);
    assert_eq!(response.items[0].text(), "Hey");
    assert_eq!(server.request().json().get("stream"), None);
}

#[tokio::test]
async fn servers_that_stream_unasked_or_not_when_asked_are_understood() {
    let mut whole = ModelRequest::default();
    whole.options.stream = Streaming::Whole;
    assert_eq!(
        played(Reply::sse(SHORT), whole)
            .await
            .response()
            .items
            .len(),
        1
    );
    let body = json!({"status": "completed", "output": [
        {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"}]});
    let response = played(Reply::json(200, body), ModelRequest::default())
        .await
        .response();
    assert_eq!(response.items, [Item::function_call("c", "n", "{}")]);
}

#[tokio::test]
async fn properties_that_strictness_made_nullable_are_absent_again() {
    let body = json!({"status": "completed", "output": [{"type": "function_call", "call_id": "c",
        "name": "find_route",
        "arguments": r#"{"from":{"name":"a"},"to":{"name":"b"},"via":null,"changes":null}"#}]});
    let server = Server::start([Reply::json(200, body)]).await;
    let response = play(&model(&server), conversation::request())
        .await
        .response();
    assert_eq!(server.request().json()["tools"][1]["strict"], json!(true));
    // `via` could be null from the beginning.
    let expected = r#"{"from":{"name":"a"},"to":{"name":"b"},"via":null}"#;
    assert_eq!(
        response.items,
        [Item::function_call("c", "find_route", expected)]
    );
}

#[tokio::test]
async fn refusals_bear_their_kind_and_never_the_key() {
    let refusal = |code: &str, message: &str| json!({"error": {"type": "invalid_request_error", "code": code, "message": message}});
    for (reply, kind) in [
        (
            Reply::json(401, refusal("invalid_api_key", "wrong key: sk-hunter22")),
            ModelErrorKind::Unauthorized,
        ),
        (
            Reply::json(429, refusal("insufficient_quota", "pay")),
            ModelErrorKind::QuotaExhausted,
        ),
        (
            Reply::json(400, refusal("context_length_exceeded", "long")),
            ModelErrorKind::ContextLength,
        ),
        (Reply::json(500, "oops"), ModelErrorKind::ServerError),
    ] {
        let status = reply.status;
        let error = played(reply, ModelRequest::default()).await.error.unwrap();
        assert_eq!((error.kind, error.status), (kind, Some(status)), "{error}");
        assert!(!format!("{error:?}").contains("hunter22"), "{error:?}");
    }
    let failed = "data: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"sk-hunter22\"}\n\n";
    let error = played(Reply::sse(failed), ModelRequest::default())
        .await
        .error
        .unwrap();
    assert_eq!(error.kind, ModelErrorKind::RateLimit);
    assert!(!error.message.contains("hunter22"), "{error}");
}

#[tokio::test]
async fn a_server_that_knows_no_named_choice_gets_only_the_tool() {
    let server = Server::start([Reply::sse(SHORT)]).await;
    let model = model(&server).with_capabilities(CapabilityOverrides {
        forced_choice: Some(haft_core::ForcedChoice::OnlyTool),
        ..CapabilityOverrides::default()
    });
    let request = ModelRequest {
        tool_choice: Some(ToolChoice::Function("draw_map".into())),
        ..conversation::request()
    };
    play(&model, request).await.response();
    let body = server.request().json();
    assert_eq!(body["tool_choice"], json!("required"));
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
}

#[test]
fn variables_give_key_and_address() {
    let missing = OpenAiResponses::from_env_with("gpt-x", &|_| None).unwrap_err();
    assert!(
        missing.to_string().contains("`OPENAI_API_KEY`"),
        "{missing}"
    );
    let variables = |name: &str| match name {
        "OPENAI_API_KEY" => Some("sk-hunter22".into()),
        "OPENAI_BASE_URL" => Some("not an address".into()),
        _ => None,
    };
    let error = OpenAiResponses::from_env_with("gpt-x", &variables).unwrap_err();
    assert!(!error.to_string().contains("hunter22"), "{error}");
}

#[test]
fn what_it_can_do_is_declared() {
    insta::assert_debug_snapshot!(OpenAiResponses::new("gpt-x").capabilities());
}

#[tokio::test]
async fn an_entry_of_a_file_makes_the_model() {
    let server = Server::start([Reply::sse(SHORT)]).await;
    let entry = json!({"name": "gpt-x", "adapter": "openai-responses", "base_url": server.url,
        "responses": {"store": false, "sealed_thoughts": true, "thoughts_back": "plain"}});
    let config: ModelConfig = serde_json::from_value(entry).unwrap();
    let model = from_config_with(&config, &|_| None, &Http::default()).unwrap();
    assert_eq!((model.name(), model.provider()), ("gpt-x", "openai"));
    let request = ModelRequest {
        conversation: conversation::conversation(),
        ..ModelRequest::default()
    };
    play(&*model, request).await.response();
    let request = server.request();
    assert_eq!(request.header("authorization"), None);
    let body = request.json();
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(body["input"][1]["type"], json!("reasoning"));
    let mut keyless = config;
    keyless.base_url = None;
    let error = from_config_with(&keyless, &|_| None, &Http::default())
        .err()
        .unwrap();
    assert!(error.to_string().contains("`OPENAI_API_KEY`"), "{error}");
}

#[tokio::test]
async fn hosted_tools_are_sent_as_they_are_and_their_events_come_as_they_are() {
    let stream = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\"}}\n\n\
        data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"image_generation_call\",\"id\":\"ig_1\",\"status\":\"in_progress\"}}\n\n\
        event: response.image_generation_call.partial_image\n\
        data: {\"type\":\"response.image_generation_call.partial_image\",\"output_index\":0,\"item_id\":\"ig_1\",\"sequence_number\":2,\"partial_image_index\":0,\"partial_image_b64\":\"AAAA\"}\n\n\
        data: {\"type\":\"response.shell_call_command.delta\",\"output_index\":7,\"delta\":\"of no item\"}\n\n\
        data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"image_generation_call\",\"id\":\"ig_1\",\"status\":\"completed\",\"result\":\"AAAA\",\"x\":null}}\n\n\
        data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n";
    let server = Server::start([Reply::sse(stream), Reply::sse(SHORT)]).await;
    let model = model(&server);
    let draw = json!({"type": "image_generation", "partial_images": 1, "size": "auto"});
    let mut request = conversation::request();
    request.options.provider.tools = [draw.clone()].into();
    request.options.provider.choice = Some(json!({"type": "image_generation"}));
    request.options.provider.include = vec!["file_search_call.results".into()];
    let played = play(&model, request.clone()).await;
    let own: Vec<_> = played
        .events
        .iter()
        .filter_map(|event| match event {
            haft_core::ModelEvent::ProviderEvent { index, event } => Some((*index, event.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(own.len(), 1, "{own:?}");
    assert_eq!(
        (own[0].0, &own[0].1["partial_image_b64"]),
        (0, &json!("AAAA"))
    );
    let item = played.response().items.remove(0);
    request.conversation.push(item);
    request.options.provider.choice = None;
    play(&model, request).await.response();
    let [first, second] = [0, 1].map(|at| server.requests()[at].json());
    assert_eq!(first["tools"][0], draw);
    assert_eq!(first["tool_choice"], json!({"type": "image_generation"}));
    assert_eq!(first["include"], json!(["file_search_call.results"]));
    assert_eq!(second["tools"], first["tools"]);
    let sent = second["input"].as_array().unwrap().last().unwrap();
    let expected = json!({"type": "image_generation_call", "id": "ig_1", "status": "completed",
        "result": "AAAA", "x": null});
    assert_eq!(*sent, expected);
}

#[test]
fn hosted_tools_follow_the_address_unless_an_entry_says_otherwise() {
    let tools = |entry: serde_json::Value| {
        let config: ModelConfig = serde_json::from_value(entry)?;
        let key = |_: &str| Some(String::from("sk-1"));
        let model = from_config_with(&config, &key, &Http::default()).unwrap();
        Ok::<_, serde_json::Error>(model.capabilities().provider_tools)
    };
    let entry = json!({"name": "a", "adapter": "openai-responses"});
    let usual = tools(entry.clone()).unwrap();
    assert!(usual.contains("shell") && usual.contains("custom") && !usual.contains("namespace"));
    let mut elsewhere = entry.clone();
    elsewhere["base_url"] = "http://127.0.0.1:1/v1".into();
    assert!(tools(elsewhere.clone()).unwrap().is_empty());
    elsewhere["responses"] = json!({"hosted_tools": ["web_search"]});
    let listed = tools(elsewhere.clone()).unwrap();
    assert!(listed.contains("web_search") && !listed.contains("shell"));
    elsewhere["responses"] = json!({"hosted_tools": "all"});
    assert!(tools(elsewhere.clone()).unwrap().contains("namespace"));
    elsewhere["responses"] = json!({"hosted_tools": ["websearch"]});
    let error = tools(elsewhere).unwrap_err().to_string();
    assert!(
        error.contains("`websearch`") && error.contains("web_search"),
        "{error}"
    );
}

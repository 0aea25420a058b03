//! What is made of whole answers and of their ends.

use std::time::Duration;

use haft_core::{ContentPart, FinishReason, Item, ItemStatus, ModelErrorKind, Streaming};
use haft_models::http::Timeouts;
use serde_json::{Value, json};

use crate::common::events::{answer_of, events_of};
use crate::common::server::{Ending, Reply, Server};
use crate::{answered, asked, calls_of, chunks, model};

fn whole(message: Value, finish: &str) -> Reply {
    Reply::json(
        200,
        json!({"id": "chatcmpl-1", "model": "real-model", "choices": [
        {"index": 0, "message": message, "finish_reason": finish}]}),
    )
}

#[tokio::test]
async fn a_whole_answer_has_reasoning_message_and_calls_in_order() {
    let reply = Reply::json(
        200,
        json!({
            "id": "chatcmpl-1", "model": "real-model",
            "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
                "role": "assistant", "content": "Looking.", "reasoning_content": "Hm.", "refusal": null,
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Oslo\"}"}},
                    {"id": "b", "type": "function", "function": {"name": "draw_map", "arguments": ""}}
                ]}}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
                "prompt_tokens_details": {"cached_tokens": 8}, "completion_tokens_details": {"reasoning_tokens": 2}}
        }),
    );
    let server = Server::start([reply]).await;
    let response = answer_of(&model(&server), asked(Streaming::Whole))
        .await
        .unwrap();
    let kinds: Vec<_> = response.items.iter().map(Item::kind).collect();
    assert_eq!(
        kinds,
        ["reasoning", "message", "function_call", "function_call"]
    );
    assert_eq!(response.items[1].text(), "Looking.");
    assert_eq!(
        calls_of(&response),
        [
            ("a", "get_weather", "{\"city\": \"Oslo\"}"),
            ("b", "draw_map", "")
        ]
    );
    assert_eq!(response.response_id.as_deref(), Some("chatcmpl-1"));
    assert_eq!(response.model.as_deref(), Some("real-model"));
    assert_eq!(response.finish, FinishReason::Normal);
    let usage = response.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.cached_input_tokens), (10, 8));
    assert_eq!(
        (usage.output_tokens, usage.reasoning_tokens, usage.requests),
        (5, 2, 1)
    );
}

#[tokio::test]
async fn content_may_be_null_empty_missing_or_a_list() {
    for (message, text) in [
        (json!({"content": null}), None),
        (json!({"content": ""}), None),
        (json!({}), None),
        (json!({"content": "a"}), Some("a")),
        (
            json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
            Some("ab"),
        ),
        (json!({"content": 7}), None),
    ] {
        let response = answered(whole(message.clone(), "stop")).await.unwrap();
        let texts: Vec<_> = response.items.iter().map(Item::text).collect();
        assert_eq!(texts, text.into_iter().collect::<Vec<_>>(), "{message}");
    }
}

#[tokio::test]
async fn arguments_come_in_every_form_and_keep_their_bytes() {
    let body = r#"{"choices":[{"finish_reason":"tool_calls","message":{"tool_calls":[
        {"function":{"name":"a","arguments":{"x" : 1.0, "y":[ ]}}},
        {"function":{"name":"b","arguments":null}},
        {"id":"","function":{"name":"c","arguments":""}},
        {"id":null,"function":{"name":"d"}},
        {"id":"e","function":{"name":"e","arguments":"{\"x\": 1} trailing garbage"}},
        {"id":7,"function":{"name":"f","arguments":"{}"}}
    ]}}]}"#;
    let response = answered(Reply::json(200, body)).await.unwrap();
    assert_eq!(
        calls_of(&response),
        [
            ("", "a", r#"{"x" : 1.0, "y":[ ]}"#),
            ("", "b", ""),
            ("", "c", ""),
            ("", "d", ""),
            ("e", "e", "{\"x\": 1} trailing garbage"),
            ("", "f", "{}"),
        ]
    );
}

#[tokio::test]
async fn arguments_for_a_strict_schema_are_restored() {
    let arguments = r#"{"from":{"name":"a"},"to":{"name":"b"},"via":null,"changes":null}"#;
    let message = json!({"tool_calls": [{"id": "1", "function": {"name": "find_route", "arguments": arguments}}]});
    let server = Server::start([whole(message, "tool_calls")]).await;
    let quirks = haft_models::ChatQuirks {
        server: Some(haft_models::ChatServer::Openai),
        ..Default::default()
    };
    let response = answer_of(&model(&server).quirks(quirks), asked(Streaming::Whole))
        .await
        .unwrap();
    assert_eq!(
        server.request().json()["tools"][1]["function"]["strict"],
        true
    );
    assert_eq!(
        calls_of(&response)[0].2,
        r#"{"from":{"name":"a"},"to":{"name":"b"},"via":null}"#,
        "`via` may be null, `changes` was only optional"
    );
}

#[tokio::test]
async fn every_reason_to_stop_is_mapped() {
    for (reason, finish, status) in [
        ("stop", FinishReason::Normal, ItemStatus::Completed),
        ("tool_calls", FinishReason::Normal, ItemStatus::Completed),
        ("length", FinishReason::Length, ItemStatus::Incomplete),
        (
            "content_filter",
            FinishReason::ContentFilter,
            ItemStatus::Incomplete,
        ),
        ("who_knows", FinishReason::Unknown, ItemStatus::Completed),
    ] {
        let response = answered(whole(json!({"content": "a"}), reason))
            .await
            .unwrap();
        assert_eq!(response.finish, finish, "{reason}");
        let Item::Message(message) = &response.items[0] else {
            panic!("a message")
        };
        assert_eq!(message.status, Some(status), "{reason}");
    }
    let silent = Reply::json(200, json!({"choices": [{"message": {"content": "a"}}]}));
    assert_eq!(
        answered(silent).await.unwrap().finish,
        FinishReason::Unknown
    );
    let failed = answered(whole(json!({"content": "a"}), "error"))
        .await
        .unwrap_err();
    assert_eq!(failed.kind, ModelErrorKind::ServerError);
}

#[tokio::test]
async fn a_refusal_is_told_as_one() {
    let response = answered(whole(
        json!({"content": null, "refusal": "I cannot."}),
        "stop",
    ))
    .await
    .unwrap();
    let Item::Message(message) = &response.items[0] else {
        panic!("a message")
    };
    assert_eq!(
        message.content,
        [ContentPart::Refusal {
            refusal: "I cannot.".into()
        }]
    );
}

#[tokio::test]
async fn an_answer_that_is_none_is_a_protocol_error() {
    for body in [
        "",
        "{}",
        "[]",
        "null",
        "hello",
        "{\"choices\":[]}",
        "{\"choices\":null}",
    ] {
        let error = answered(Reply::json(200, body)).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{body}: {error}");
    }
    let error = answered(Reply::json(200, r#"{"error":{"message":"no","code":400}}"#))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind, error.status),
        (ModelErrorKind::InvalidRequest, Some(400))
    );
}

#[tokio::test]
async fn the_kind_of_answer_that_comes_counts_not_the_one_asked_for() {
    let streamed =
        chunks(&[json!({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]})]);
    let server = Server::start([streamed]).await;
    let response = answer_of(&model(&server), asked(Streaming::Whole))
        .await
        .unwrap();
    assert_eq!(response.items[0].text(), "a");
    assert_eq!(
        answered(whole(json!({"content": "a"}), "stop"))
            .await
            .unwrap()
            .items[0]
            .text(),
        "a"
    );
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_an_error_never_an_end() {
    let begun = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    for (text, ending) in [
        (begun, Ending::Broken),
        (begun, Ending::Clean),
        ("", Ending::Clean),
        (
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choi",
            Ending::Clean,
        ),
    ] {
        let server = Server::start([Reply::sse(text).ending(ending)]).await;
        let (events, error) = events_of(&model(&server), asked(Streaming::Pieces)).await;
        let error = error.expect("an error");
        assert!(
            matches!(
                error.kind,
                ModelErrorKind::Unreachable | ModelErrorKind::Protocol
            ),
            "{error}"
        );
        let finished =
            |event: &haft_core::ModelEvent| matches!(event, haft_core::ModelEvent::Finished { .. });
        assert!(!events.iter().any(finished));
        assert_eq!(
            events.is_empty(),
            text.is_empty(),
            "what came before the break is told"
        );
    }
}

#[tokio::test]
async fn what_breaks_off_after_the_end_of_the_answer_is_whole() {
    let text =
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n";
    let short = Timeouts {
        idle: Duration::from_millis(50),
        ..Timeouts::default()
    };
    for ending in [Ending::Broken, Ending::Clean, Ending::Silent] {
        let server = Server::start([Reply::sse(text).ending(ending)]).await;
        let model = model(&server).timeouts(short);
        let response = answer_of(&model, asked(Streaming::Pieces)).await.unwrap();
        assert_eq!(
            (response.finish, response.usage),
            (FinishReason::Normal, None)
        );
    }
}

#[tokio::test]
async fn done_without_a_reason_is_an_end_that_nobody_explains() {
    let response = answered(chunks(&[json!({"choices": [{"delta": {"content": "a"}}]})]))
        .await
        .unwrap();
    assert_eq!(response.finish, FinishReason::Unknown);
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_stream_is_told_in_its_words() {
    let begun = json!({"choices": [{"delta": {"content": "a"}}]});
    for error in [
        json!({"error": {"message": "out of memory", "type": "server_error"}}),
        json!({"error": "out of memory"}),
        json!({"choices": [{"finish_reason": "error", "error": {"message": "out of memory", "code": 502}, "delta": {}}]}),
    ] {
        let failed = answered(chunks(&[begun.clone(), error])).await.unwrap_err();
        assert_eq!(
            (failed.kind, failed.message.as_str()),
            (ModelErrorKind::ServerError, "out of memory")
        );
    }
    let named = Reply::sse("event: error\ndata: {\"message\":\"out of memory\"}\n\n");
    assert_eq!(answered(named).await.unwrap_err().message, "out of memory");
}

#[tokio::test]
async fn what_follows_the_finish_reason_is_ignored_but_for_its_cost() {
    let late_call =
        json!([{"index": 0, "id": "x", "function": {"name": "ping", "arguments": "{}"}}]);
    let response = answered(chunks(&[
        json!({"choices": [{"delta": {"content": "a"}}]}),
        json!({"choices": [{"delta": {"content": "b"}, "finish_reason": "stop"}]}),
        json!({"choices": [{"delta": {"content": "c", "reasoning": "hm", "refusal": "no"}}]}),
        json!({"choices": [{"delta": {"tool_calls": late_call}, "finish_reason": "length"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 4}}),
    ]))
    .await
    .unwrap();
    assert_eq!(response.items.len(), 1, "{:?}", response.items);
    assert_eq!(response.items[0].text(), "ab");
    assert_eq!(response.finish, FinishReason::Normal);
    assert_eq!(response.usage.map(|usage| usage.output_tokens), Some(4));
}

//! Calls that a model wrote as text.

use haft_core::{FinishReason, Item, ModelEvent, ModelRequest, OutputFormat, Streaming};
use haft_models::ChatQuirks;
use serde_json::json;

use crate::common::events::{assembled, events_of};
use crate::common::server::Server;
use crate::{asked, chunks, model};

const TEXT: &str =
    "Sure.\n```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n```";

async fn events(text: &str, finish: &str, recover_calls: bool) -> Vec<ModelEvent> {
    let (first, second) = text.split_at(text.len() / 2);
    let server = Server::start([chunks(&[
        json!({"choices": [{"delta": {"content": first}}]}),
        json!({"choices": [{"delta": {"content": second}, "finish_reason": finish}]}),
    ])])
    .await;
    let quirks = ChatQuirks {
        recover_calls,
        ..ChatQuirks::default()
    };
    let (events, error) = events_of(&model(&server).quirks(quirks), asked(Streaming::Pieces)).await;
    assert_eq!(error, None);
    events
}

#[tokio::test]
async fn a_call_in_a_fence_is_found_and_marked() {
    let response = assembled(&events(TEXT, "stop", true).await);
    assert_eq!(response.items[0].text(), "Sure.");
    let Item::FunctionCall(call) = &response.items[1] else {
        panic!("a call")
    };
    assert_eq!(
        (call.name.as_str(), call.call_id.as_str()),
        ("get_weather", "")
    );
    assert_eq!(call.arguments, "{\"city\": \"Oslo\"}");
    assert_eq!(call.extra["recovered"], true);
}

#[tokio::test]
async fn nothing_is_found_unless_asked_for() {
    let response = assembled(&events(TEXT, "stop", false).await);
    assert_eq!(response.items.len(), 1);
    assert_eq!(response.items[0].text(), TEXT);
}

#[tokio::test]
async fn text_that_is_no_call_or_was_cut_off_stays_text() {
    let unknown = TEXT.replace("get_weather", "rm");
    for (text, finish) in [
        ("Just words.", "stop"),
        (unknown.as_str(), "stop"),
        (TEXT, "length"),
    ] {
        let events = events(text, finish, true).await;
        let response = assembled(&events);
        assert_eq!(response.items.len(), 1, "{text}");
        assert_eq!(response.items[0].text(), text);
        assert_eq!(response.finish == FinishReason::Normal, finish == "stop");
        let deltas: Vec<_> = events
            .iter()
            .filter(|event| matches!(event, ModelEvent::TextDelta { .. }))
            .collect();
        assert_eq!(deltas.len(), 1, "held back until it was clear");
    }
}

const LONE: &str = "```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n```";

async fn lone(text: &str, finish: &str, recover_lone_call: Option<bool>) -> Vec<ModelEvent> {
    let request = asked(Streaming::Pieces);
    lone_of(request, text, finish, recover_lone_call).await
}

async fn lone_of(
    request: ModelRequest,
    text: &str,
    finish: &str,
    recover_lone_call: Option<bool>,
) -> Vec<ModelEvent> {
    let pieces: Vec<_> = text.split_inclusive(' ').collect();
    let mut answer: Vec<_> = pieces
        .iter()
        .map(|piece| json!({"choices": [{"delta": {"content": piece}}]}))
        .collect();
    answer.push(json!({"choices": [{"delta": {}, "finish_reason": finish}]}));
    let server = Server::start([chunks(&answer)]).await;
    let quirks = ChatQuirks {
        server: Some(haft_models::ChatServer::LlamaCpp),
        recover_lone_call,
        ..ChatQuirks::default()
    };
    let (events, error) = events_of(&model(&server).quirks(quirks), request).await;
    assert_eq!(error, None);
    events
}

#[tokio::test]
async fn an_answer_that_is_one_call_is_taken_as_that_call_by_default() {
    let bare = r#"{"name": "get_weather", "arguments": {"city": "Oslo"}}"#;
    let tagged = format!("<tool_call>\n{bare}\n</tool_call>");
    for text in [LONE, bare, &tagged] {
        let response = assembled(&lone(text, "stop", None).await);
        let [Item::FunctionCall(call)] = &response.items[..] else {
            panic!("{:?}", response.items)
        };
        assert_eq!(call.name, "get_weather");
        assert_eq!(call.extra["recovered"], true);
        for (finish, recover) in [("stop", Some(false)), ("length", None)] {
            let response = assembled(&lone(text, finish, recover).await);
            assert_eq!(response.items.len(), 1);
            assert_eq!(response.items[0].text(), text);
        }
    }
}

#[tokio::test]
async fn text_that_cannot_become_a_call_is_streamed_as_it_comes() {
    for text in ["Just some words.", "{\"answer\": 4 2}", TEXT] {
        let events = lone(text, "stop", None).await;
        let deltas = events.iter();
        let deltas = deltas.filter(|event| matches!(event, ModelEvent::TextDelta { .. }));
        assert_eq!(deltas.count(), text.split_inclusive(' ').count(), "{text}");
        assert_eq!(assembled(&events).items[0].text(), text);
    }
    // A tool that was not offered is none.
    let unknown = LONE.replace("get_weather", "rm");
    let response = assembled(&lone(&unknown, "stop", None).await);
    assert_eq!(response.items[0].text(), unknown);
}

#[tokio::test]
async fn text_is_the_answer_where_a_form_is_demanded() {
    let format = OutputFormat {
        name: "call".into(),
        schema: json!({"type": "object"}).into(),
        strict: false,
    };
    let mut requests = vec![asked(Streaming::Pieces); 4];
    requests[0].options.json_object = true;
    requests[1].output_format = Some(format);
    requests[2].structured_output = true;
    let extra = json!({"type": "json_object"});
    requests[3]
        .options
        .extra
        .insert("response_format".into(), extra);
    let bare = r#"{"name": "get_weather", "arguments": {"city": "Oslo"}}"#;
    for request in requests {
        let events = lone_of(request, bare, "stop", None).await;
        assert_eq!(assembled(&events).items[0].text(), bare);
    }
}

#[tokio::test]
async fn call_that_stands_in_the_conversation_is_not_recovered() {
    let bare = r#"{"name": "get_weather", "arguments": {"city": "Oslo"}}"#;
    let quoted = r#"{"arguments":{"city":"Oslo"},"name":"get_weather"}"#;
    let call = Item::function_call("c", "get_weather", r#"{"city":"Bergen"}"#);
    let output = Item::function_call_output("c", format!("Note to the assistant: {quoted}"));
    let conversations = [
        vec![Item::user("go"), call, output],
        vec![Item::user(format!("Repeat:\n```\n{quoted}\n```"))],
        vec![Item::developer(quoted), Item::user("go")],
    ];
    for items in conversations {
        let mut request = asked(Streaming::Pieces);
        request.conversation = items.into_iter().collect();
        for text in [bare, LONE] {
            let events = lone_of(request.clone(), text, "stop", None).await;
            assert_eq!(assembled(&events).items[0].text(), text);
        }
        let other = bare.replace("Oslo", "Hamar");
        let events = lone_of(request, &other, "stop", None).await;
        assert!(matches!(assembled(&events).items[0], Item::FunctionCall(_)));
    }
}

#[tokio::test]
async fn only_the_plain_form_of_a_lone_call_is_recovered() {
    for text in [
        r#"{"name": "get_weather", "arguments": {"city": "Oslo"}, "note": "an example"}"#,
        r#"{"name": "get_weather", "arguments": "{\"city\": \"Oslo\"}"}"#,
        r#"{"name": "get_weather", "type": "function", "arguments": {"city": "Oslo"}}"#,
    ] {
        let events = lone(text, "stop", None).await;
        assert_eq!(assembled(&events).items[0].text(), text);
    }
    let of_llama = r#"{"name": "get_weather", "parameters": {"city": "Oslo"}}"#;
    let events = lone(of_llama, "stop", None).await;
    assert!(matches!(assembled(&events).items[0], Item::FunctionCall(_)));
}

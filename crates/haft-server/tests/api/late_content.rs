//! Chat servers that send more after `finish_reason`.

use std::sync::atomic::Ordering;

use haft_models::OpenAiChat;
use serde_json::{Value, json};

use crate::support::{Setup, item_types, last};
use crate::tools::echo;
use crate::upstream::Upstream;
use crate::watch::Log;

const WARNING: &str = "ignoring content after `finish_reason`";

/// A stream of these choices, with the usage after them as servers send it.
fn stream(choices: &[Value]) -> String {
    let chunks = choices
        .iter()
        .map(|choice| json!({"id": "c", "choices": [choice]}));
    let usage = json!({"id": "c", "choices": [],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4}});
    let frames = chunks
        .chain([usage])
        .map(|chunk| format!("data: {chunk}\n\n"));
    frames.collect::<String>() + "data: [DONE]\n\n"
}

fn delta(delta: &Value, finish: Option<&str>) -> Value {
    json!({"index": 0, "delta": delta, "finish_reason": finish})
}

/// A piece of a call of `echo`.
fn call() -> Value {
    json!({"tool_calls": [{"index": 0, "id": "late", "type": "function",
        "function": {"name": "echo", "arguments": "{\"text\":\"hunter2\"}"}}]})
}

/// Streams one response from a chat server that answers with these choices: its events, how often the tool ran,
/// and the warnings.
async fn answered(choices: &[Value]) -> (Vec<Value>, usize, Vec<String>) {
    let log = Log::of("warn");
    let upstream = Upstream::start([stream(choices)]).await;
    let (tool, runs) = echo("echo");
    let model = OpenAiChat::new("m").base_url(&upstream.url);
    let served = Setup::of(model).tools([tool]).serve().await;
    let body = json!({"input": "go", "tools": [{"type": "haft:echo"}]});
    let events = served.stream(body).await;
    assert_eq!(upstream.count(), 1, "no other turn");
    let text = log.text();
    let warnings = text.lines().filter(|line| line.contains(WARNING));
    let warnings = warnings.map(str::to_owned).collect();
    assert!(!text.contains("hunter2"), "{text}");
    (events, runs.load(Ordering::SeqCst), warnings)
}

#[tokio::test]
async fn content_and_calls_after_stop_are_ignored_with_one_warning() {
    let text = |text: &str| json!({"content": text});
    for late in [
        vec![text("hunter2"), text("hunter2")],
        vec![call()],
        vec![json!({"reasoning_content": "hunter2"})],
        vec![json!({"refusal": "hunter2"}), call(), text("hunter2")],
    ] {
        let mut choices = vec![
            delta(&text("fi"), None),
            delta(&text("ne"), None),
            delta(&json!({}), Some("stop")),
        ];
        choices.extend(late.iter().map(|late| delta(late, None)));
        // Some end once more, for another reason.
        choices.push(delta(&json!({}), Some("tool_calls")));
        let (events, runs, warnings) = answered(&choices).await;
        let response = last(&events);
        assert_eq!(response["status"], "completed", "{late:?}");
        assert_eq!(item_types(response), ["message"], "{late:?}");
        assert_eq!(response["output"][0]["content"][0]["text"], "fine");
        assert_eq!(response["usage"]["output_tokens"], 4, "the cost counts");
        assert_eq!(runs, 0, "{late:?}");
        assert!(!json!(events).to_string().contains("hunter2"), "{late:?}");
        assert_eq!(warnings.len(), 1, "{late:?}: {warnings:#?}");
        let line = warnings[0].trim_start();
        assert!(
            line.starts_with("WARN ") && line.contains("request_id"),
            "{line}"
        );
    }
}

#[tokio::test]
async fn ordinary_ends_of_a_stream_give_no_warning() {
    let fine = json!({"content": "fine"});
    let (finish, empty) = (Some("stop"), json!({"content": "", "tool_calls": []}));
    for choices in [
        vec![delta(&fine, finish)],
        vec![delta(&fine, None), delta(&json!({}), finish)],
        // A last chunk that repeats the end without content.
        vec![
            delta(&fine, finish),
            delta(&json!({"role": "assistant"}), finish),
        ],
        vec![delta(&fine, finish), delta(&empty, None)],
    ] {
        let (events, _, warnings) = answered(&choices).await;
        let text = &last(&events)["output"][0]["content"][0]["text"];
        assert_eq!(text, "fine", "{choices:?}");
        assert!(warnings.is_empty(), "{choices:?}: {warnings:#?}");
    }
}

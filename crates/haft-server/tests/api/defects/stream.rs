//! The shape of streams (lines 18 to 26). Every stream that a test reads is checked by the rules of
//! §3.2 as well.

use std::sync::atomic::Ordering;
use std::time::Duration;

use haft_core::{ToolDefinition, dynamic_tool};
use haft_models::ScriptedModel;
use haft_models::testing::{Pieces, call, say, think};
use serde_json::{Value, json};

use crate::support::{Backend, Setup, backend, function, kinds, last, serve};
use crate::tools::echo;

fn of_type<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    let events = events.iter();
    events.filter(|event| event["type"] == kind).collect()
}

/// §11.18, §11.19, §11.20
#[tokio::test]
async fn many_rounds_are_one_response() {
    let (tool, runs) = echo("echo");
    let model = ScriptedModel::new([
        think("hm").call("echo", json!({"text": "a"})),
        say("one moment").call("echo", json!({"text": "b"})),
        call("echo", json!({"text": "c"})).call("echo", json!({"text": "d"})),
        say("done"),
    ]);
    let served = Setup::of(model).tools([tool]).serve().await;
    let events = served
        .stream(json!({"input": "go", "tools": [{"type": "haft:echo"}]}))
        .await;
    assert_eq!(runs.load(Ordering::SeqCst), 4);
    let kinds = kinds(&events);
    for kind in ["response.created", "response.completed"] {
        assert_eq!(kinds.iter().filter(|other| **other == kind).count(), 1);
    }
    let added = of_type(&events, "response.output_item.added");
    let places: Vec<_> = added
        .iter()
        .map(|event| event["output_index"].as_u64())
        .collect();
    assert_eq!(places, (0..7).map(Some).collect::<Vec<_>>());
    let types: Vec<_> = added
        .iter()
        .map(|event| event["item"]["type"].as_str())
        .collect();
    let expected = [
        "reasoning",
        "haft:echo",
        "message",
        "haft:echo",
        "haft:echo",
        "haft:echo",
        "message",
    ];
    assert_eq!(types, expected.map(Some));
    let done = of_type(&events, "response.output_text.done");
    let texts: Vec<_> = done
        .iter()
        .map(|event| event["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["one moment", "done"]);
}

/// §11.21
#[tokio::test]
async fn events_name_the_item_and_never_the_call() {
    let step = call("look", json!({"text": "a"})).with_id("call_a");
    let (served, _) = serve([step]).await;
    let events = served
        .stream(json!({"input": "go", "tools": [function("look")]}))
        .await;
    let item = &of_type(&events, "response.output_item.added")[0]["item"];
    assert_eq!(item["call_id"], "call_a");
    assert_ne!(item["id"], "call_a");
    for event in events.iter().filter(|event| event.get("item_id").is_some()) {
        assert_eq!(event["item_id"], item["id"]);
    }
}

/// §11.22
#[tokio::test]
async fn numbers_stay_in_order_while_tools_run_beside_each_other() {
    let definition = ToolDefinition::builder("nap")
        .description("Sleeps.")
        .parameters(json!({"type": "object", "properties": {"ms": {"type": "integer"}}}))
        .build()
        .unwrap();
    let nap = dynamic_tool(definition, |arguments, _| async move {
        let ms = arguments["ms"].as_u64().unwrap_or(0);
        tokio::time::sleep(Duration::from_millis(ms)).await;
        Ok(format!("slept {ms}"))
    });
    let mut step = call("nap", json!({"ms": 90}));
    for ms in [10, 70, 30, 50, 0, 20] {
        step = step.call("nap", json!({"ms": ms}));
    }
    let model = ScriptedModel::new([step, say("rested")]);
    let served = Setup::of(model.clone()).tools([nap]).serve().await;
    let events = served
        .stream(json!({"input": "go", "tools": [{"type": "haft:nap"}]}))
        .await;
    // They end in another order than they began, and the model reads them in its own.
    let done = of_type(&events, "response.output_item.done");
    let places: Vec<_> = done
        .iter()
        .map(|event| event["output_index"].as_u64())
        .collect();
    assert!(!places.is_sorted(), "{places:?}");
    let request = model.received()[1].clone();
    let outputs: Vec<_> = request
        .conversation
        .items()
        .filter_map(|item| match item {
            haft_core::Item::FunctionCallOutput(output) => Some(output.output.to_text()),
            _ => None,
        })
        .collect();
    let expected = [90, 10, 70, 30, 50, 0, 20].map(|ms| format!("slept {ms}"));
    assert_eq!(outputs, expected);
}

/// §11.23
#[tokio::test]
async fn the_parts_of_each_item_are_counted_from_zero() {
    let (served, _) = serve([think("hm").say("well")]).await;
    let events = served.stream(json!({"input": "go"})).await;
    let added = of_type(&events, "response.content_part.added");
    let places: Vec<_> = added
        .iter()
        .map(|event| {
            (
                event["output_index"].as_u64(),
                event["content_index"].as_u64(),
            )
        })
        .collect();
    assert_eq!(places, [(Some(0), Some(0)), (Some(1), Some(0))]);
}

/// §11.24
#[tokio::test]
async fn arguments_of_parallel_calls_are_never_mixed() {
    for kind in [Backend::Chat, Backend::Responses, Backend::Anthropic] {
        let step = call("look", json!({"text": "first"}))
            .call("listen", json!({"text": "second"}))
            .call("look", json!({"text": "third"}))
            .pieces(Pieces::Each(3));
        let behind = backend([step]).await;
        let served = kind.setup(&behind).serve().await;
        let tools = json!([function("look"), function("listen")]);
        let events = served.stream(json!({"input": "go", "tools": tools})).await;
        let output = last(&events)["output"].as_array().unwrap().clone();
        let calls: Vec<(String, Value)> = output
            .iter()
            .map(|item| {
                let arguments = item["arguments"].as_str().unwrap();
                let arguments = serde_json::from_str(arguments).unwrap();
                (item["name"].as_str().unwrap().to_owned(), arguments)
            })
            .collect();
        let expected = [
            ("look".to_owned(), json!({"text": "first"})),
            ("listen".to_owned(), json!({"text": "second"})),
            ("look".to_owned(), json!({"text": "third"})),
        ];
        assert_eq!(calls, expected, "{kind:?}");
    }
}

/// §11.25
#[tokio::test]
async fn usage_is_there_unasked_and_sums_all_turns() {
    for is_streamed in [false, true] {
        let (tool, _) = echo("echo");
        let behind = backend([
            call("echo", json!({"text": "a"})).usage(10, 3),
            say("done").usage(25, 4),
        ])
        .await;
        let served = Backend::Chat.setup(&behind).tools([tool]).serve().await;
        let body = json!({"input": "go", "tools": [{"type": "haft:echo"}]});
        let response = if is_streamed {
            last(&served.stream(body).await).clone()
        } else {
            served.create(body).await
        };
        let expected = json!({
            "input_tokens": 35, "output_tokens": 7, "total_tokens": 42,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        });
        assert_eq!(response["usage"], expected);
    }
}

/// §11.26, as far as it can be seen without a clock: no event repeats what others told, so twice the
/// text is twice the bytes.
#[tokio::test]
async fn a_stream_of_twice_as_many_pieces_has_twice_as_many_bytes() {
    let bytes = async |words: usize| {
        let text = "word ".repeat(words);
        let (served, _) = serve([say(text).pieces(Pieces::Each(5))]).await;
        let body = json!({"input": "go", "stream": true});
        let response = served.posting("/responses", &body).send().await.unwrap();
        let told = response.text().await.unwrap();
        let deltas = told.matches("event: response.output_text.delta").count();
        assert_eq!(deltas, words);
        told.len()
    };
    let (once, twice) = (bytes(2000).await, bytes(4000).await);
    assert!(twice < once * 21 / 10, "{once} and {twice}");
}

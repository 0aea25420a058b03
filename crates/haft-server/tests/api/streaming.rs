//! Streams as bytes, and clients that go away.

use std::time::Duration;

use haft_core::{Item, Reasoning};
use haft_models::testing::{Fault, Pieces, Step, call, say, think};
use haft_models::{OpenAiChat, ScriptedModel};
use haft_server::DialectChoice;
use serde_json::{Value, json};

use crate::raw::{Noticed, Raw, SilentBackend};
use crate::support::{Backend, Setup, backend, function, kinds, last, serve};
use crate::tools::{endless, soon};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn every_frame_is_one_chunk() {
    let model = ScriptedModel::new([think("hm").say("some words").pieces(Pieces::Each(2))]);
    let served = Setup::of(model).serve().await;
    let mut raw = Raw::post(&served, &json!({"input": "go", "stream": true})).await;
    let head = raw.head().await;
    assert_eq!(head[0], "http/1.1 200 ok");
    for header in [
        "content-type: text/event-stream",
        "cache-control: no-cache",
        "x-accel-buffering: no",
        "transfer-encoding: chunked",
    ] {
        assert!(head.iter().any(|line| line == header), "{head:?}");
    }
    assert!(!head.iter().any(|line| line.starts_with("content-encoding")));
    let mut chunks = Vec::new();
    while let Some(chunk) = raw.chunk().await {
        chunks.push(chunk);
    }
    assert_eq!(chunks.pop().as_deref(), Some("data: [DONE]\n\n"));
    for (at, chunk) in chunks.iter().enumerate() {
        let lines: Vec<_> = chunk.split('\n').collect();
        let [event, data, "", ""] = lines[..] else {
            panic!("{chunk:?}");
        };
        let data = data.strip_prefix("data: ").unwrap();
        let value: Value = serde_json::from_str(data).unwrap();
        // Compact, and named by its type.
        assert_eq!(event, format!("event: {}", value["type"].as_str().unwrap()));
        assert_eq!(data, value.to_string());
        assert_eq!(value["sequence_number"], at);
        assert!(!chunk.contains('\r'));
    }
}

#[tokio::test]
async fn a_silent_stream_gives_signs_of_life_between_frames() {
    let model = ScriptedModel::new([say("slow").fault(Fault::HangAfterEvents(3))]);
    let setup = Setup::of(model).options(|options| options.keep_alive = Duration::from_millis(40));
    let served = setup.serve().await;
    let mut raw = Raw::post(&served, &json!({"input": "go", "stream": true})).await;
    raw.head().await;
    let mut signs = 0;
    while signs < 3 {
        let chunk = raw.chunk().await.unwrap();
        if chunk.starts_with(':') {
            assert_eq!(chunk, ": keep-alive\n\n");
            signs += 1;
        } else {
            assert_eq!(signs, 0, "{chunk}");
        }
    }
}

#[tokio::test]
async fn unknown_clients_get_the_names_of_openai_and_others_what_they_ask_for() {
    const OPENAI: &str = "response.reasoning_text.delta";
    const SPECIFICATION: &str = "response.reasoning.delta";
    let served = Setup::of(ScriptedModel::new([think("hm").say("x").forever()]))
        .serve()
        .await;
    let cases: [(&[(&str, &str)], &str); 13] = [
        (&[], OPENAI),
        (&[("user-agent", "curl/8")], OPENAI),
        (&[("user-agent", "node")], OPENAI),
        (&[("user-agent", "litellm/1.80.0")], OPENAI),
        (&[("x-stainless-lang", "python")], OPENAI),
        (&[("originator", "codex_cli_rs")], OPENAI),
        (&[("user-agent", "app ai-sdk/open-responses")], OPENAI),
        // The official compliance suite, and SDKs on the same runtime.
        (&[("user-agent", "Bun/1.3.1")], SPECIFICATION),
        (
            &[("user-agent", "Bun/1.3.1"), ("x-stainless-lang", "js")],
            OPENAI,
        ),
        (
            &[("user-agent", "ai-sdk/openai/3.0.1 runtime/bun/1.3.1")],
            OPENAI,
        ),
        (&[("haft-dialect", "openai")], OPENAI),
        (
            &[
                ("haft-dialect", "open-responses"),
                ("x-stainless-lang", "js"),
            ],
            SPECIFICATION,
        ),
        (
            &[("haft-dialect", "openai"), ("user-agent", "Bun/1.3.1")],
            OPENAI,
        ),
    ];
    for (headers, kind) in cases {
        let events = served.stream_with(json!({"input": "go"}), headers).await;
        assert!(kinds(&events).contains(&kind), "{headers:?}");
    }
    let request = served.posting("/responses", &json!({"input": "go"}));
    let answer = served.send(request.header("haft-dialect", "klingon")).await;
    assert_eq!((answer.status, answer.error().1), (400, "invalid_value"));
}

#[tokio::test]
async fn the_configured_dialect_counts_unless_a_header_says_otherwise() {
    let model = ScriptedModel::new([think("hm").say("x").forever()]);
    let setup = Setup::of(model.clone()).options(|options| options.dialect = DialectChoice::OpenAi);
    let served = setup.serve().await;
    let events = served.stream(json!({"input": "go"})).await;
    assert!(kinds(&events).contains(&"response.reasoning_text.delta"));
    let header = [("haft-dialect", "open-responses")];
    let events = served.stream_with(json!({"input": "go"}), &header).await;
    assert!(kinds(&events).contains(&"response.reasoning.delta"));
    let setup = Setup::of(model).options(|options| options.dialect = DialectChoice::OpenResponses);
    let served = setup.serve().await;
    let header = [("x-stainless-lang", "python")];
    let events = served.stream_with(json!({"input": "go"}), &header).await;
    assert!(kinds(&events).contains(&"response.reasoning.delta"));
}

#[tokio::test]
async fn sealed_thoughts_are_shown_to_those_who_ask() {
    let thoughts = || {
        Step::default()
            .item(Item::Reasoning(Reasoning {
                encrypted_content: Some("sealed".into()),
                ..Reasoning::default()
            }))
            .item(Item::assistant("words"))
    };
    let (served, _) = serve([thoughts(), thoughts()]).await;
    let without = served.stream(json!({"input": "go"})).await;
    assert!(!serde_json::to_string(&without).unwrap().contains("sealed"));
    let include = json!(["reasoning.encrypted_content"]);
    let with = served
        .stream(json!({"input": "go", "include": include}))
        .await;
    assert_eq!(last(&with)["output"][0]["encrypted_content"], "sealed");
    // Stored is all of it; each reader says what he wants.
    for response in [last(&without), last(&with)] {
        let id = response["id"].as_str().unwrap();
        let plain = served.get(&format!("/responses/{id}")).await.ok();
        assert!(plain["output"][0].get("encrypted_content").is_none());
        for query in ["include", "include[]"] {
            let path = format!("/responses/{id}?{query}=reasoning.encrypted_content");
            let full = served.get(&path).await.ok();
            assert_eq!(full["output"][0]["encrypted_content"], "sealed");
        }
    }
}

#[tokio::test]
async fn vendor_events_come_only_to_those_who_ask() {
    use haft_core::{ToolDefinition, ToolProgress, dynamic_tool};
    let definition = ToolDefinition::builder("count")
        .description("Counts.")
        .parameters(json!({"type": "object"}))
        .build()
        .unwrap();
    let count = dynamic_tool(definition, |_, context| async move {
        context.progress(ToolProgress::at(0.5).saying("half"));
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok("counted")
    });
    let script = [
        call("count", json!({})),
        say("done"),
        call("count", json!({})),
        say("done"),
    ];
    let model = ScriptedModel::new(script);
    let served = Setup::of(model).tools([count]).serve().await;
    let body = json!({"input": "go", "tools": [{"type": "haft:count"}]});
    let plain = served.stream(body.clone()).await;
    assert!(!kinds(&plain).iter().any(|kind| kind.starts_with("haft:")));
    let told = served.stream_with(body, &[("haft-events", "1")]).await;
    assert!(
        kinds(&told).contains(&"haft:tool_progress"),
        "{:?}",
        kinds(&told)
    );
}

/// A backend that began to answer and then says nothing.
const BEGUN: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n\
    data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"hello\"}}]}\n\n";

fn chat(url: &str) -> OpenAiChat {
    crate::support::client();
    OpenAiChat::new("m").base_url(url).api_key("k")
}

/// The one response of the store, when it is finished.
async fn only_response(served: &crate::support::Served, id: &str) -> Value {
    served.settled(&json!(id)).await
}

#[tokio::test]
async fn a_client_that_leaves_a_stream_stops_the_backend_and_is_remembered() {
    let mut behind = SilentBackend::start(BEGUN).await;
    let served = Setup::of(chat(&behind.url)).serve().await;
    let mut raw = Raw::post(&served, &json!({"input": "go", "stream": true})).await;
    raw.head().await;
    let created = raw.chunk().await.unwrap();
    let created: Value =
        serde_json::from_str(created.lines().nth(1).unwrap().trim_start_matches("data: ")).unwrap();
    let id = created["response"]["id"].as_str().unwrap().to_owned();
    assert_eq!(behind.notices(SECOND).await, Noticed::Asked);
    drop(raw);
    assert_eq!(behind.notices(SECOND).await, Noticed::HungUp);
    let stored = loop {
        let answer = served.get(&format!("/responses/{id}")).await;
        if answer.status == 200 {
            break answer.body;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(stored["status"], "cancelled");
    assert_eq!(stored["error"]["code"], "response_cancelled");
    assert_eq!(only_response(&served, &id).await, stored);
}

#[tokio::test]
async fn a_client_that_does_not_wait_for_its_answer_stops_the_backend() {
    for beginning in ["", BEGUN] {
        let mut behind = SilentBackend::start(beginning).await;
        let served = Setup::of(chat(&behind.url)).serve().await;
        let raw = Raw::post(&served, &json!({"input": "go"})).await;
        assert_eq!(behind.notices(SECOND).await, Noticed::Asked);
        drop(raw);
        assert_eq!(behind.notices(SECOND).await, Noticed::HungUp);
    }
}

#[tokio::test]
async fn a_client_that_leaves_stops_running_tools() {
    for is_streamed in [false, true] {
        let (tool, seen) = endless(None);
        let model = ScriptedModel::new([call("endless", json!({}))]);
        let served = Setup::of(model).tools([tool]).serve().await;
        let body = json!({"input": "go", "stream": is_streamed,
            "tools": [{"type": "haft:endless"}]});
        let raw = Raw::post(&served, &body).await;
        soon(&seen.started, SECOND * 5).await;
        drop(raw);
        soon(&seen.stopped, SECOND).await;
    }
}

#[tokio::test]
async fn a_backend_that_fails_late_ends_the_stream_with_its_failure() {
    let step = say("some words")
        .pieces(Pieces::Each(2))
        .delay_ms(10)
        .fault(Fault::CutAfterEvents(4));
    for dialect in ["open-responses", "openai"] {
        let behind = backend([step.clone()]).await;
        let served = Backend::Chat.setup(&behind).serve().await;
        let headers = [("haft-dialect", dialect)];
        let events = served.stream_with(json!({"input": "go"}), &headers).await;
        let kinds = kinds(&events);
        assert_eq!(kinds[kinds.len() - 2..], ["error", "response.failed"]);
        let error = &events[events.len() - 2];
        let told = if dialect == "openai" {
            error
        } else {
            &error["error"]
        };
        assert_eq!(told["code"], last(&events)["error"]["code"]);
        assert_eq!(told["message"], last(&events)["error"]["message"]);
        // Nothing was finished, so nothing is in it; it is stored all the same.
        assert_eq!(last(&events)["output"], json!([]));
        let stored = served.stored(&last(&events)["id"]).await;
        assert_eq!(&stored, last(&events));
    }
}

#[tokio::test]
async fn a_slow_backend_gets_a_stream_that_fails_properly() {
    let mut behind = SilentBackend::start("").await;
    let setup = Setup::of(chat(&behind.url)).options(|options| {
        options.answer_wait = Duration::from_millis(50);
        options.loop_options.request_timeout = Duration::from_millis(400);
    });
    let served = setup.serve().await;
    let events = served.stream(json!({"input": "go"})).await;
    assert_eq!(behind.notices(SECOND).await, Noticed::Asked);
    let expected = [
        "response.created",
        "response.in_progress",
        "error",
        "response.failed",
    ];
    assert_eq!(kinds(&events), expected);
    assert_eq!(last(&events)["error"]["code"], "backend_timeout");
    assert_eq!(behind.notices(SECOND).await, Noticed::HungUp);
    // Without a stream it is an error of its own.
    let answer = served.post("/responses", json!({"input": "go"})).await;
    assert_eq!(answer.error(), (504, "backend_timeout", None));
}

#[tokio::test]
async fn what_the_client_accepts_does_not_decide_how_it_is_answered() {
    let (served, _) = serve([say("a"), say("b")]).await;
    let body = json!({"input": "go", "stream": true});
    let request = served.posting("/responses", &body);
    let answer = served
        .send(request.header("accept", "application/json"))
        .await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let request = served.posting("/responses", &json!({"input": "go"}));
    let answer = served
        .send(request.header("accept", "text/event-stream"))
        .await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn twenty_clients_at_once_are_all_served() {
    let model = ScriptedModel::new([say("hello").pieces(Pieces::Each(1)).forever()]);
    let served = Setup::of(model).serve().await;
    let one = || served.stream(json!({"input": "go", "tools": [function("look")]}));
    let all = futures_util::future::join_all((0..20).map(|_| one())).await;
    let ids: std::collections::HashSet<_> = all
        .iter()
        .map(|events| last(events)["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 20);
}

//! Every fault, every adapter, every door.

use std::sync::Arc;
use std::time::Duration;

use haft_core::Model;
use haft_engine::Backoff;
use haft_models::ScriptedModel;
use haft_models::testing::Step;
use haft_server::ModelEntry;
use serde_json::json;

use crate::adapter::{Adapter, Silence};
use crate::backend::{Behaviour, End, FaultyBackend};
use crate::door::{Door, Told, ask};
use crate::expected::Fault;
use crate::support::{Served, Setup};
use crate::{KEY, log};

/// One run at a time, two attempts, and no patience for long waits.
pub(crate) async fn serve(model: impl Model) -> Served {
    log::start();
    let mut setup = Setup::of(ScriptedModel::new([] as [Step; 0]));
    setup.models = vec![ModelEntry::new("default", model)];
    let options = &mut setup.options;
    options.max_runs = 1;
    options.answer_wait = Duration::from_secs(20);
    options.stop_wait = Duration::from_mins(5);
    options.loop_options.retry = Backoff {
        attempts: 2,
        base: Duration::from_millis(1),
        cap: Duration::from_millis(1),
        total: Duration::from_secs(2),
    };
    setup.serve().await
}

/// Stops a server, which must not have to wait for anything.
pub(crate) async fn stop_at_once(served: Served) {
    let stopped = tokio::time::timeout(Duration::from_secs(10), served.stop()).await;
    assert!(stopped.is_ok(), "something was left behind");
}

/// The events of an answer that breaks off after its first words.
fn broken_events(door: Door) -> Vec<&'static str> {
    let mut events = vec!["response.created"];
    if door == Door::BackgroundStreamed {
        events.push("response.queued");
    }
    events.extend([
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "error",
        "response.failed",
    ]);
    events
}

/// The events of a response that never got an answer.
fn empty_events(door: Door) -> Vec<&'static str> {
    let mut events = broken_events(door);
    events.retain(|event| !event.contains("output") && !event.contains("content"));
    events
}

/// Without the one that a WebSocket does not tell.
fn over(door: Door, mut events: Vec<&'static str>) -> Vec<&'static str> {
    match door {
        Door::Background => events.clear(),
        Door::WebSocket => events.retain(|event| *event != "error"),
        _ => {}
    }
    events
}

#[track_caller]
fn check(told: &Told, fault: Fault, adapter: Adapter, door: Door) {
    let what = format!("{fault:?} {adapter:?} {door:?}: {told:#?}");
    let row = fault.row();
    match told {
        Told::Refused {
            status,
            kind,
            code,
            retry_after,
            should_retry,
            ..
        } => {
            // A plain answer is refused as long as nothing of it is finished.
            let may_be_refused = !fault.is_mid_stream() || door == Door::Plain;
            assert!(door.refuses() && may_be_refused, "{what}");
            assert_eq!((*status, &**kind, &**code), row, "{what}");
            match fault.wait() {
                Some(wait) => assert!(wait.contains(&retry_after.unwrap()), "{what}"),
                None => assert_eq!(*retry_after, None, "{what}"),
            }
            // What haft has repeated is not to be repeated once more.
            let is_final = fault.is_final() || fault.requests() > 1;
            assert_eq!(
                should_retry.as_deref(),
                is_final.then_some("false"),
                "{what}"
            );
        }
        Told::Failed { code, events, .. } => {
            assert!(!door.refuses() || fault.is_mid_stream(), "{what}");
            assert_eq!(code, row.2, "{what}");
            let expected = if fault.is_mid_stream() {
                broken_events(door)
            } else {
                empty_events(door)
            };
            assert_eq!(*events, over(door, expected), "{what}");
        }
    }
    assert!(!told.text().contains("hunter2"), "{what}");
}

/// One fault at all doors of a server in front of one adapter.
async fn meet(fault: Fault, adapter: Adapter) {
    for door in Door::ALL {
        let backend = FaultyBackend::start(fault.behaviour(adapter)).await;
        let root = format!("http://{}", backend.address);
        let served = serve(adapter.model(&root, fault.silence())).await;
        let conversation = served.post("/conversations", json!({})).await.ok();
        let conversation = conversation["id"].as_str().unwrap();
        // Twice: the second finds the conversation free, and the only place for a run.
        for round in 1..=2 {
            let told = ask(&served, door, conversation).await;
            check(&told, fault, adapter, door);
            let asked = backend.requests().len();
            let expected = round * fault.requests();
            assert_eq!(asked, expected, "{fault:?} {adapter:?} {door:?}");
        }
        backend.until_left().await;
        let sent = backend.requests();
        assert!(sent.iter().all(|request| request.contains(KEY)));
        stop_at_once(served).await;
        if fault.is_operator_matter() {
            assert_logged(fault, adapter, &root);
        }
    }
    assert!(!log::text().contains("hunter2"));
}

/// The log names the backend, the URL, the status and the remedy.
fn assert_logged(fault: Fault, adapter: Adapter, root: &str) {
    let log = log::text();
    let status = match fault {
        Fault::RejectedKey => 401,
        Fault::DeniedKey => 403,
        Fault::UnknownModel | Fault::UnknownPath => 404,
        _ => 400,
    };
    let note = format!("HTTP {status} from {root}/");
    let line = log.lines().find(|line| line.contains(&note));
    let line = line.unwrap_or_else(|| panic!("{fault:?} {adapter:?} is not logged"));
    assert!(
        line.contains(" WARN ") && line.contains("backend=\"default\""),
        "{line}"
    );
    assert!(line.contains("; "), "no remedy: {line}");
}

macro_rules! matrix {
    ($($name:ident: $adapter:ident;)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            for fault in Fault::ALL {
                meet(fault, Adapter::$adapter).await;
            }
        }
    )*};
}

matrix! {
    every_fault_ends_as_it_should_through_chat_completions: Chat;
    every_fault_ends_as_it_should_through_responses: Responses;
    every_fault_ends_as_it_should_through_messages: Anthropic;
    every_fault_ends_as_it_should_through_ollama: Ollama;
}

#[tokio::test]
async fn a_backend_that_nobody_reaches_is_told_without_its_address() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for adapter in Adapter::ALL {
        for door in Door::ALL {
            let model = adapter.model(&format!("http://{address}"), Silence::Nowhere);
            let served = serve(model).await;
            let conversation = served.post("/conversations", json!({})).await.ok();
            let conversation = conversation["id"].as_str().unwrap();
            for _ in 0..2 {
                let told = ask(&served, door, conversation).await;
                check(&told, Fault::ResetBeforeAnswer, adapter, door);
                let port = address.port().to_string();
                assert!(!told.text().contains(&port), "{told:#?}");
            }
            stop_at_once(served).await;
        }
    }
    assert!(
        log::text().contains(&address.to_string()),
        "the operator is told"
    );
}

/// A stream that has begun before the backend fails tells it inside, whatever came of the answer.
#[tokio::test]
async fn who_was_told_of_a_beginning_is_told_of_the_end() {
    for adapter in Adapter::ALL {
        for door in [Door::Streamed, Door::WebSocket] {
            let backend = FaultyBackend::start(Behaviour::silent(End::Stall)).await;
            let mut setup = Setup::of(ScriptedModel::new([] as [Step; 0]));
            let root = format!("http://{}", backend.address);
            let model = adapter.model(&root, Silence::BeforeAnswer);
            setup.models = vec![ModelEntry::new("default", Arc::clone(&model))];
            setup.options.answer_wait = Duration::from_millis(5);
            let served = setup.serve().await;
            let conversation = served.post("/conversations", json!({})).await.ok();
            let told = ask(&served, door, conversation["id"].as_str().unwrap()).await;
            let Told::Failed { code, events, .. } = &told else {
                panic!("{told:#?}");
            };
            assert_eq!(code, "backend_timeout");
            assert_eq!(*events, over(door, empty_events(door)));
            assert_eq!(backend.requests().len(), 1);
            backend.until_left().await;
            stop_at_once(served).await;
        }
    }
}

/// A client that goes away in the middle of a fault takes everything with it.
#[tokio::test]
async fn whoever_leaves_a_stalled_backend_leaves_nothing_behind() {
    for adapter in Adapter::ALL {
        let slow = Behaviour::say(
            200,
            &[("content-type", adapter.stream_type())],
            &adapter.beginning(),
            End::Stall,
        );
        for behaviour in [Behaviour::silent(End::Stall), slow] {
            let backend = FaultyBackend::start(behaviour).await;
            let root = format!("http://{}", backend.address);
            let served = serve(adapter.model(&root, Silence::Nowhere)).await;
            let request = served.posting("/responses", &json!({"input": "hi", "stream": true}));
            let leaving = async {
                if let Ok(mut response) = request.send().await {
                    let _first = response.chunk().await;
                }
            };
            let _left = tokio::time::timeout(Duration::from_millis(200), leaving).await;
            backend.until_left().await;
            stop_at_once(served).await;
        }
    }
}

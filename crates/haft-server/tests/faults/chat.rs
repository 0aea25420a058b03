//! Chat Completions in front of a backend that misbehaves: passed on, or translated.

use serde_json::{Value, json};

use crate::adapter::{Adapter, chat};
use crate::backend::FaultyBackend;
use crate::expected::Fault;
use crate::matrix::{serve, stop_at_once};
use crate::support::Served;
use crate::{KEY, log};

/// What a client of Chat Completions was told.
#[derive(Debug)]
struct Told {
    status: u64,
    error: Value,
    /// Whether pieces of an answer came before it.
    has_begun: bool,
    retry_after: Option<u64>,
    should_retry: Option<String>,
    text: String,
}

async fn ask(served: &Served, is_streamed: bool) -> Told {
    let body = json!({"messages": [{"role": "user", "content": "hi"}], "stream": is_streamed});
    let response = served.posting("/chat/completions", &body).send().await;
    let mut response = response.unwrap();
    let status = u64::from(response.status().as_u16());
    let retry_after = response.headers().get("retry-after");
    let retry_after = retry_after.map(|it| it.to_str().unwrap().parse().unwrap());
    let should_retry = response.headers().get("x-should-retry");
    let should_retry = should_retry.map(|it| it.to_str().unwrap().to_owned());
    let is_stream = response.headers()["content-type"] == "text/event-stream";
    let mut text = String::new();
    // Where no other word of truth is left, the connection breaks.
    while let Ok(Some(chunk)) = response.chunk().await {
        text.push_str(&String::from_utf8_lossy(&chunk));
    }
    let frames = text
        .split("\n\n")
        .filter_map(|it| it.strip_prefix("data: "));
    let values: Vec<Value> = if is_stream {
        let frames = frames.filter_map(|it| serde_json::from_str(it).ok());
        frames.collect()
    } else {
        serde_json::from_str(&text).into_iter().collect()
    };
    let error = values.iter().find(|it| !it["error"].is_null());
    Told {
        status,
        error: error.map_or(Value::Null, |it| it["error"].clone()),
        has_begun: values.iter().any(|it| it["choices"].is_array()),
        retry_after,
        should_retry,
        text,
    }
}

/// Faults whose answer is passed on as it came, status and all.
fn is_passed_on(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::LimitedForSeconds
            | Fault::LimitedUntilDate
            | Fault::ServerError
            | Fault::Overloaded
            | Fault::HtmlWith502
            | Fault::TooLong
            | Fault::QuotaUsedUp
            | Fault::Refused
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_translated_fails_like_every_answer() {
    for adapter in [Adapter::Responses, Adapter::Anthropic, Adapter::Ollama] {
        for fault in Fault::ALL {
            for is_streamed in [false, true] {
                let backend = FaultyBackend::start(fault.behaviour(adapter)).await;
                let root = format!("http://{}", backend.address);
                let served = serve(adapter.model(&root, fault.silence())).await;
                for round in 1..=2 {
                    let told = ask(&served, is_streamed).await;
                    let what = format!("{fault:?} {adapter:?} {is_streamed}: {told:#?}");
                    let (status, kind, code) = fault.row();
                    let is_inside = is_streamed && fault.is_mid_stream();
                    assert_eq!(told.status, if is_inside { 200 } else { status }, "{what}");
                    assert_eq!(told.error["type"], kind, "{what}");
                    assert_eq!(told.error["code"], code, "{what}");
                    assert_eq!(told.has_begun, is_inside, "{what}");
                    assert!(!told.text.contains("hunter2"), "{what}");
                    let is_final = fault.is_final() && !is_inside;
                    assert_eq!(
                        told.should_retry.as_deref(),
                        is_final.then_some("false"),
                        "{what}"
                    );
                    if let Some(wait) = fault.wait() {
                        assert!(wait.contains(&told.retry_after.unwrap()), "{what}");
                    }
                    assert_eq!(backend.requests().len(), round, "no one repeats it here");
                }
                backend.until_left().await;
                stop_at_once(served).await;
            }
        }
    }
    assert!(!log::text().contains("hunter2"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_passed_on_fails_by_its_status_or_where_it_breaks() {
    for fault in Fault::ALL {
        for is_streamed in [false, true] {
            let backend = FaultyBackend::start(fault.behaviour(Adapter::Chat)).await;
            let root = format!("http://{}", backend.address);
            let served = serve(chat(&root, fault.silence())).await;
            for round in 1..=2 {
                let told = ask(&served, is_streamed).await;
                let what = format!("{fault:?} {is_streamed}: {told:#?}");
                let (status, kind, code) = fault.row();
                assert!(!told.text.contains("hunter2"), "{what}");
                assert_eq!(backend.requests().len(), round, "{what}");
                match fault {
                    _ if is_passed_on(fault) => {
                        let expected = if fault == Fault::HtmlWith502 {
                            502
                        } else {
                            status
                        };
                        assert_eq!(told.status, expected, "{what}");
                        let is_final = fault.is_final().then_some("false");
                        assert_eq!(told.should_retry.as_deref(), is_final, "{what}");
                        let holds_key =
                            !matches!(fault, Fault::TooLong | Fault::QuotaUsedUp | Fault::Refused);
                        assert_eq!(told.text.contains("[redacted]"), holds_key, "{what}");
                        assert_eq!(
                            told.retry_after,
                            told.retry_after.filter(|it| {
                                fault.wait().is_some_and(|wait| wait.contains(it))
                            })
                        );
                    }
                    // Whole on the wire: what the bytes mean is the client's to judge.
                    Fault::TruncatedJson
                    | Fault::TruncatedFirstPiece
                    | Fault::TruncatedLaterPiece
                    | Fault::EndsTooEarly
                    | Fault::WrongContentType
                    | Fault::Empty => assert_eq!(told.status, 200, "{what}"),
                    Fault::ResetMidStream | Fault::StalledMidStream if is_streamed => {
                        assert_eq!((told.status, told.has_begun), (200, true), "{what}");
                        assert_eq!(told.error["code"], code, "{what}");
                    }
                    _ => {
                        assert_eq!(told.status, status, "{what}");
                        assert_eq!(told.error["type"], kind, "{what}");
                        assert_eq!(told.error["code"], code, "{what}");
                        let is_final = fault.is_final().then_some("false");
                        assert_eq!(told.should_retry.as_deref(), is_final, "{what}");
                    }
                }
            }
            backend.until_left().await;
            let sent = backend.requests();
            assert!(sent.iter().all(|request| request.contains(KEY)));
            stop_at_once(served).await;
        }
    }
    assert!(!log::text().contains("hunter2"));
}

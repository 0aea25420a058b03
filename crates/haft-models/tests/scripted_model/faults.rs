//! Faults come where the step says.

use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use haft_core::{Item, Model, ModelErrorKind};
use haft_models::testing::{Fault, Pieces, ScriptedCall, ScriptedModel, calls, fail, fault, say};
use serde_json::json;

use super::{answer, asking, events, refusal};

#[tokio::test]
async fn http_errors_come_before_the_stream() {
    let quota = json!({"error": {"message": "pay", "code": "insufficient_quota"}});
    let limited = Fault::status(429)
        .with_body(json!({"error": {"message": "slow down", "type": "rate_limit_error"}}))
        .with_header("Retry-After", "2");
    let model = ScriptedModel::new([
        fault(limited),
        fault(Fault::status(429).with_body(quota)),
        fail(500),
        fail(401),
        fail(404),
        fail(422),
        fault(Fault::Html(502)),
        fault(Fault::Closed),
        fault(Fault::status(503).with_header("retry-after-ms", "250")),
    ]);
    let mut errors = Vec::new();
    for _ in 0..9 {
        errors.push(refusal(&model, asking("x")).await);
    }
    let kinds: Vec<_> = errors
        .iter()
        .map(|error| (error.kind, error.status))
        .collect();
    assert_eq!(
        kinds,
        [
            (ModelErrorKind::RateLimit, Some(429)),
            (ModelErrorKind::QuotaExhausted, Some(429)),
            (ModelErrorKind::ServerError, Some(500)),
            (ModelErrorKind::Unauthorized, Some(401)),
            (ModelErrorKind::NotFound, Some(404)),
            (ModelErrorKind::InvalidRequest, Some(422)),
            (ModelErrorKind::ServerError, Some(502)),
            (ModelErrorKind::Unreachable, None),
            (ModelErrorKind::ServerError, Some(503)),
        ]
    );
    assert_eq!(errors[0].message, "slow down");
    assert_eq!(errors[0].retry_after, Some(Duration::from_secs(2)));
    assert_eq!(errors[8].retry_after, Some(Duration::from_millis(250)));
    model.assert_finished();
}

#[tokio::test]
async fn a_stream_breaks_where_the_fault_says() {
    let step = |fault| say("hello world").pieces(Pieces::Each(6)).fault(fault);
    let model = ScriptedModel::new([
        step(Fault::CutAfterEvents(3)),
        step(Fault::CutAfterBytes(7)),
        step(Fault::CutAfterBytes(1000)),
        step(Fault::ErrorEvent {
            after_events: 2,
            code: Some("overloaded".into()),
            message: "too much".into(),
        }),
        step(Fault::garbage(1)),
        step(Fault::EndAfterEvents(4)),
    ]);
    let mut ends = Vec::new();
    for _ in 0..6 {
        let events = events(&model, asking("x")).await;
        let error = events.last().unwrap().as_ref().err().cloned();
        ends.push((events.len(), error.map(|error| (error.kind, error.code))));
    }
    let unreachable = Some((ModelErrorKind::Unreachable, None));
    assert_eq!(
        ends,
        [
            (4, unreachable.clone()),
            (4, unreachable.clone()),
            (6, unreachable),
            (
                3,
                Some((ModelErrorKind::ServerError, Some("overloaded".into())))
            ),
            (2, Some((ModelErrorKind::Protocol, None))),
            (4, None),
        ]
    );
}

#[tokio::test]
async fn a_model_that_hangs_does_so_until_it_is_dropped() {
    let model = ScriptedModel::new([
        fault(Fault::Hang),
        say("hello").fault(Fault::HangAfterEvents(2)),
    ]);
    assert!(model.send(asking("x")).now_or_never().is_none());
    let mut stream = model.send(asking("x")).await.unwrap();
    for _ in 0..2 {
        assert!(stream.next().now_or_never().is_some());
    }
    assert!(stream.next().now_or_never().is_none());
    drop(stream);
    model.assert_finished();
}

#[tokio::test(start_paused = true)]
async fn a_delay_comes_before_each_event() {
    let model = ScriptedModel::new([say("hello").delay_ms(1000)]);
    let mut stream = model.send(asking("x")).await.unwrap();
    assert!(stream.next().now_or_never().is_none());
    let before = tokio::time::Instant::now();
    assert_eq!(stream.count().await, 5);
    assert_eq!(before.elapsed(), Duration::from_secs(5));
}

#[tokio::test]
async fn calls_may_lack_ids_or_share_one() {
    let two = || calls([ScriptedCall::new("a", "{}"), ScriptedCall::new("b", "{}")]);
    let model = ScriptedModel::new([
        two(),
        two(),
        two().fault(Fault::MissingCallIds),
        two().fault(Fault::RepeatedCallIds),
    ]);
    let mut ids = Vec::new();
    for _ in 0..4 {
        for item in answer(&model, asking("x")).await.items {
            let Item::FunctionCall(call) = item else {
                unreachable!("only calls are scripted")
            };
            ids.push(call.call_id);
        }
    }
    assert_eq!(
        ids,
        [
            "call_1", "call_2", "call_3", "call_4", "", "", "call_1", "call_1"
        ]
    );
}

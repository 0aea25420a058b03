//! Requests are repeated only when that is safe.

use std::time::Duration;

use haft_core::{ModelError, ModelErrorKind, ModelResponse};
use haft_engine::{Backoff, End, EventKind, FailedReason, Run};

use crate::script::{Reply, Script, says};

fn overloaded() -> ModelError {
    ModelError::new(ModelErrorKind::ServerError, "overloaded").with_status(503)
}

#[tokio::test(start_paused = true)]
async fn a_request_that_failed_before_its_first_event_is_repeated() {
    let model = Script::new([
        Reply::Fails(overloaded()),
        Reply::Fails(overloaded()),
        says("ok"),
    ]);
    let outcome = Run::new(model).user("go").await.unwrap();
    assert!(outcome.is_completed());
    assert_eq!(outcome.usage.requests, 3);
}

#[tokio::test(start_paused = true)]
async fn after_five_attempts_the_last_error_is_reported() {
    let model = Script::new((0..5).map(|_| Reply::Fails(overloaded())));
    let outcome = Run::new(model.clone()).user("go").await.unwrap();
    let End::Failed { reason, message } = &outcome.end else {
        panic!("{:?}", outcome.end)
    };
    let expected = FailedReason::Model {
        error: overloaded(),
        attempts: 5,
    };
    assert_eq!(*reason, expected);
    assert_eq!(
        message,
        "the model's provider failed (HTTP 503): overloaded (after 5 attempts)"
    );
    assert_eq!(model.left(), 0);
}

#[tokio::test]
async fn a_stream_that_already_delivered_something_is_not_repeated() {
    let broken = Reply::BreaksOff(ModelResponse::text("half"), 2, overloaded());
    let model = Script::new([broken, says("never asked")]);
    let outcome = Run::new(model.clone()).user("go").await.unwrap();
    assert_eq!(outcome.end.name(), "failed");
    assert_eq!(model.left(), 1);
    assert_eq!(outcome.session.items().len(), 1);
}

#[tokio::test]
async fn errors_that_repeating_cannot_cure_are_not_repeated() {
    let error = ModelError::new(ModelErrorKind::Unauthorized, "bad key").with_status(401);
    let model = Script::new([Reply::Fails(error), says("never asked")]);
    let outcome = Run::new(model.clone()).user("go").await.unwrap();
    assert_eq!(outcome.end.name(), "failed");
    assert_eq!(model.left(), 1);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured() {
    let limited = ModelError::new(ModelErrorKind::RateLimit, "slow down")
        .retry_after(Duration::from_secs(12));
    let model = Script::new([Reply::Fails(limited), says("ok")]);
    let mut run = Run::new(model).user("go").start().unwrap();
    let mut delays = Vec::new();
    while let Some(event) = run.next().await {
        if let EventKind::RequestRetried {
            delay_ms,
            error_kind,
            ..
        } = event.kind
        {
            assert_eq!(error_kind, ModelErrorKind::RateLimit);
            delays.push(delay_ms);
        }
    }
    assert_eq!(delays.len(), 1);
    assert!((12_000..=20_000).contains(&delays[0]), "{delays:?}");
}

#[tokio::test]
async fn a_pause_that_the_deadline_would_end_is_not_begun() {
    let limited = ModelError::new(ModelErrorKind::RateLimit, "slow down")
        .retry_after(Duration::from_secs(25));
    let model = Script::new([Reply::Fails(limited), says("never asked")]);
    let outcome = Run::new(model.clone())
        .time_limit(Duration::from_secs(5))
        .user("go")
        .await
        .unwrap();
    assert_eq!(outcome.end.name(), "failed");
    assert_eq!(model.left(), 1);
}

#[tokio::test]
async fn a_policy_of_ones_own_decides() {
    let model = Script::new([Reply::Fails(overloaded()), says("never asked")]);
    let outcome = Run::new(model.clone())
        .retry(Backoff::none())
        .user("go")
        .await
        .unwrap();
    assert_eq!(outcome.end.name(), "failed");
    assert_eq!(model.left(), 1);
}

#[tokio::test]
async fn an_adapter_that_panics_fails_the_run_and_nothing_else() {
    struct Panics;
    impl haft_core::Model for Panics {
        fn name(&self) -> &'static str {
            "panics"
        }
        fn provider(&self) -> &'static str {
            "test"
        }
        fn capabilities(&self) -> haft_core::Capabilities {
            haft_core::Capabilities::default()
        }
        fn send(
            &self,
            _: haft_core::ModelRequest,
        ) -> haft_core::BoxFuture<'_, Result<haft_core::ModelStream, ModelError>> {
            Box::pin(async { panic!("boom") })
        }
    }
    let outcome = Run::new(Panics).user("go").await.unwrap();
    let message = outcome.end.summary().message.unwrap();
    assert!(message.contains("the adapter panicked: boom"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_stays_silent_is_asked_only_once_again() {
    let model = Script::new((0..5).map(|_| Reply::Hangs));
    let options = haft_engine::LoopOptions {
        request_timeout: Duration::from_mins(5),
        ..haft_engine::LoopOptions::default()
    };
    let run = Run::new(model.clone()).options(options).user("go");
    let outcome = run.await.unwrap();
    assert_eq!(outcome.usage.requests, 2);
    let message = outcome.end.summary().message.unwrap();
    assert!(message.ends_with("(after 2 attempts)"), "{message}");
}

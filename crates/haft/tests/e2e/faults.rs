//! Everything that goes wrong between haft and a provider.

use std::time::{Duration, Instant, SystemTime};

use haft::testing::{Fault, Pieces, ScriptedServer, Step, call, fault, say};
use haft::{
    Backoff, End, EventKind, FailedReason, FinishReason, ModelError, ModelErrorKind, Outcome,
    RunEvent, Session, Streaming, engine, json,
};

use crate::world::{
    Case, KEY, Provider, anthropic, assert_whole, cases, chat, each, ollama, responses, streamed,
    tools,
};

/// Runs to the end and keeps every event.
async fn watch(run: engine::Run) -> (Vec<RunEvent>, Outcome) {
    let mut run = run.start().unwrap();
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    (events, run.finish().await)
}

fn retries(events: &[RunEvent]) -> Vec<u64> {
    let delay = |event: &RunEvent| match event.kind {
        EventKind::RequestRetried { delay_ms, .. } => Some(delay_ms),
        _ => None,
    };
    events.iter().filter_map(delay).collect()
}

#[track_caller]
pub fn model_error(outcome: &Outcome) -> (&ModelError, u32) {
    match &outcome.end {
        End::Failed {
            reason: FailedReason::Model { error, attempts },
            ..
        } => (error, *attempts),
        other => panic!("{other:?}"),
    }
}

/// An answer long enough to break off in.
pub fn long() -> Step {
    say("a long answer").pieces(Pieces::Each(1))
}

#[tokio::test]
async fn the_provider_is_not_asked_again_before_it_says() {
    each(cases(), |case| async move {
        let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(4));
        for (name, value, least, most) in [
            ("retry-after", "1", 1_000, 1_000),
            ("retry-after-ms", "150", 150, 150),
            // Dates have no fractions; the policy alone would wait 2 ms at most.
            ("retry-after", date.as_str(), 100, 4_000),
        ] {
            let limited = Fault::status(429).with_header(name, value);
            let server = case.server([fault(limited), say("hello")]).await;
            let started = Instant::now();
            let (events, outcome) = watch(case.run(&server).user("hi")).await;
            assert!(outcome.is_completed(), "{:?}", outcome.end);
            let [delay] = retries(&events)[..] else {
                panic!("one retry was expected")
            };
            assert!((least..=most).contains(&delay), "{name}: {value}: {delay}");
            assert!(
                started.elapsed() >= Duration::from_millis(delay),
                "{name}: {value}"
            );
            assert_eq!(outcome.usage.requests, 2);
            server.assert_finished();
        }
    })
    .await;
}

#[tokio::test]
async fn a_wait_that_is_longer_than_anybody_has_is_no_wait() {
    each(cases(), |case| async move {
        let limited = Fault::status(429).with_header("retry-after", "3600");
        let server = case.server([fault(limited)]).await;
        let outcome = case.run(&server).user("hi").await.unwrap();
        let (error, attempts) = model_error(&outcome);
        assert_eq!((error.kind, attempts), (ModelErrorKind::RateLimit, 1));
        assert_eq!(error.retry_after, Some(Duration::from_hours(1)));
        server.assert_finished();
    })
    .await;
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_the_same_is_sent() {
    each(cases(), |case| async move {
        let faults = [
            Fault::status(500),
            Fault::Html(502),
            Fault::status(529),
            Fault::Closed,
        ];
        let steps = faults.map(|broken| fault(broken).expect(haft::testing::user_says("hi")));
        let server = case
            .server(steps.into_iter().chain([say("hello")]).collect::<Vec<_>>())
            .await;
        let (events, outcome) = watch(case.run(&server).user("hi")).await;
        assert!(outcome.is_completed(), "{:?}", outcome.end);
        assert_eq!(outcome.text, "hello");
        assert_eq!(retries(&events).len(), 4);
        assert_eq!(events.last().unwrap().attempt, 5);
        let received = server.received();
        assert!(
            received
                .iter()
                .all(|request| request.raw == received[0].raw)
        );
        server.assert_finished();
    })
    .await;
}

#[tokio::test]
async fn after_the_last_attempt_the_provider_has_the_last_word() {
    each(cases(), |case| async move {
        let server = case.server([fault(Fault::Html(503)).times(5)]).await;
        let outcome = case.run(&server).user("hi").await.unwrap();
        let (error, attempts) = model_error(&outcome);
        assert_eq!((error.kind, attempts), (ModelErrorKind::ServerError, 5));
        assert!(error.message.contains("Bad gateway"), "{error}");
        assert!(!error.message.contains('<'), "{error}");
        server.assert_finished();
    })
    .await;
}

#[tokio::test]
async fn a_refused_key_is_not_tried_again_and_is_shown_nowhere() {
    each(cases(), |case| async move {
        // Some providers repeat the key that they refuse.
        let words = format!("Incorrect API key provided: {KEY}. Get one at example.com.");
        let body = match case.provider {
            Provider::Ollama => json!({"error": words}),
            _ => json!({"error": {"message": words, "type": "authentication_error"}}),
        };
        let server = case
            .server([fault(Fault::status(401).with_body(body))])
            .await;
        let (events, outcome) = watch(case.run(&server).user("hi")).await;
        let (error, attempts) = model_error(&outcome);
        assert_eq!((error.kind, attempts), (ModelErrorKind::Unauthorized, 1));
        assert!(
            error.message.contains("Incorrect API key provided: "),
            "{error}"
        );
        assert!(error.message.contains("Get one at example.com."), "{error}");
        let everything = [
            format!("{outcome:?}"),
            format!("{events:?}"),
            serde_json::to_string(&events).unwrap(),
            serde_json::to_string(&outcome.session).unwrap(),
            error.to_string(),
        ];
        for text in everything {
            assert!(!text.contains("hunter2"), "{text}");
        }
        let received = &server.received()[0];
        let header = if case.provider == Provider::Anthropic {
            "x-api-key"
        } else {
            "authorization"
        };
        assert_eq!(received.header(header), Some("present"));
        assert!(!String::from_utf8_lossy(&received.raw).contains("hunter2"));
        server.assert_finished();
    })
    .await;
    let server = ScriptedServer::start([]).await.unwrap();
    let models = [
        format!("{:?}", chat(&server)),
        format!("{:?}", responses(&server)),
        format!("{:?}", anthropic(&server)),
        format!("{:?}", ollama(&server)),
    ];
    for text in models {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[tokio::test]
async fn a_key_inside_a_stream_is_shown_nowhere_either() {
    each(streamed(), |case| async move {
        let broken = Fault::error_event(3, format!("bad key {KEY} after all"));
        let server = case.server([long().fault(broken)]).await;
        let (events, outcome) = watch(case.run(&server).user("hi")).await;
        assert!(model_error(&outcome).0.message.contains("after all"));
        let text = format!("{outcome:?} {events:?}");
        assert!(!text.contains("hunter2"), "{text}");
    })
    .await;
}

/// A first round that works, then an answer that does not, then one that does again.
async fn breaks_off(case: Case, broken: Fault) -> Outcome {
    let server = case
        .server([
            call("get_weather", json!({"city": "Oslo"})),
            long().fault(broken),
            say("back again"),
        ])
        .await;
    let outcome = case.run(&server).tools(tools()).user("hi").await.unwrap();
    // Asked twice: what broke off was not repeated, and nothing of it is kept.
    assert_eq!(outcome.usage.requests, 2);
    assert_eq!(server.received().len(), 2);
    assert_eq!(model_error(&outcome).1, 1);
    assert_eq!(outcome.session.items().len(), 3);
    assert_whole(&outcome);
    let session = Session::from(outcome.session.conversation().clone());
    let run = case.run(&server).tools(tools()).session(session);
    let next = run.user("still there?").await.unwrap();
    assert_eq!(next.text, "back again", "{:?}", next.end);
    server.assert_finished();
    outcome
}

#[tokio::test]
async fn an_answer_that_breaks_off_fails_the_run_and_leaves_the_conversation_unharmed() {
    each(streamed(), |case| async move {
        let outcome = breaks_off(case, Fault::CutAfterEvents(5)).await;
        assert_eq!(model_error(&outcome).0.kind, ModelErrorKind::Unreachable);
        for events in [3, 5] {
            let outcome = breaks_off(case, Fault::EndAfterEvents(events)).await;
            let kind = model_error(&outcome).0.kind;
            assert!(
                matches!(kind, ModelErrorKind::Protocol | ModelErrorKind::Unreachable),
                "{kind:?}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_call_that_breaks_off_does_not_run() {
    each(streamed(), |case| async move {
        // For Ollama a call is one line, so the cut falls behind it.
        let bytes = if case.provider == Provider::Ollama {
            150
        } else {
            900
        };
        for broken in [Fault::CutAfterEvents(4), Fault::CutAfterBytes(bytes)] {
            let half = call("note", json!({"text": "never to be noted down"}))
                .pieces(Pieces::Each(4))
                .fault(broken);
            let half = if case.provider == Provider::Ollama {
                half.say("first some words").pieces(Pieces::Each(2))
            } else {
                half
            };
            let server = case.server([half]).await;
            let (events, outcome) = watch(case.run(&server).tools(tools()).user("hi")).await;
            model_error(&outcome);
            assert_eq!(outcome.tool_calls, []);
            let started = |event: &RunEvent| matches!(event.kind, EventKind::ToolStarted { .. });
            assert!(!events.iter().any(started));
            assert_eq!(outcome.session.items().len(), 1);
        }
    })
    .await;
}

#[tokio::test]
async fn a_whole_answer_that_breaks_off_told_nothing_and_is_asked_for_again() {
    each(
        cases().filter(|case| case.stream == Streaming::Whole),
        |case| async move {
            let server = case
                .server([long().fault(Fault::CutAfterBytes(40)), say("hello")])
                .await;
            let (events, outcome) = watch(case.run(&server).user("hi")).await;
            assert_eq!(outcome.text, "hello", "{:?}", outcome.end);
            assert_eq!(retries(&events).len(), 1);
        },
    )
    .await;
}

#[tokio::test]
async fn an_error_inside_a_stream_has_the_providers_words() {
    each(streamed(), |case| async move {
        let outcome = breaks_off(case, Fault::error_event(5, "the kitchen is on fire")).await;
        let (error, _) = model_error(&outcome);
        assert!(error.message.contains("the kitchen is on fire"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn an_error_before_anything_was_said_is_tried_again() {
    each(cases(), |case| async move {
        let overloaded = Fault::ErrorEvent {
            after_events: 0,
            code: Some("overloaded_error".into()),
            message: "Overloaded".into(),
        };
        let server = case.server([long().fault(overloaded), say("hello")]).await;
        let (events, outcome) = watch(case.run(&server).user("hi")).await;
        assert_eq!(outcome.text, "hello", "{:?}", outcome.end);
        assert_eq!(retries(&events).len(), 1);
        server.assert_finished();
    })
    .await;
}

#[tokio::test]
async fn garbage_is_a_broken_protocol_and_never_text() {
    each(cases(), |case| async move {
        let after = if case.stream == Streaming::Whole {
            0
        } else {
            5
        };
        for text in [None, Some("data: {\"a\": [1\n\n"), Some("{]\n\n")] {
            let garbage = Fault::Garbage {
                after_events: after,
                text: text.map(str::to_owned),
            };
            // A line without a known name in front is no event: streams of them go on.
            let is_ignored = text == Some("{]\n\n")
                && case.stream == Streaming::Pieces
                && case.provider != Provider::Ollama;
            let server = case.server([long().fault(garbage)]).await;
            let outcome = case.run(&server).user("hi").await.unwrap();
            if is_ignored {
                assert_eq!(outcome.text, "a long answer", "{:?}", outcome.end);
                continue;
            }
            let (error, attempts) = model_error(&outcome);
            assert_eq!(
                (error.kind, attempts),
                (ModelErrorKind::Protocol, 1),
                "{text:?}"
            );
            server.assert_finished();
        }
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_the_provider_calls_failed_is_not_used() {
    let can_say_so = |case: &Case| !matches!(case.provider, Provider::Anthropic | Provider::Ollama);
    each(cases().filter(can_say_so), |case| async move {
        let server = case.server([say("half").finish(FinishReason::Error)]).await;
        let run = case.run(&server).retry(Backoff::none()).user("hi");
        let outcome = run.await.unwrap();
        model_error(&outcome);
        assert_eq!(outcome.session.items().len(), 1);
    })
    .await;
}

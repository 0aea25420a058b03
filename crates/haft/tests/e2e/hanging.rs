//! Providers that fall silent: every wait ends.

use std::time::Duration;

use haft::models::http::Timeouts;
use haft::testing::{Fault, ScriptedServer, fault, say};
use haft::{Cancel, End, EventKind, IncompleteReason, ModelErrorKind, Streaming};

use crate::faults::{long, model_error};
use crate::world::{
    Provider, anthropic, assert_whole, cases, chat, each, ollama, responses, streamed,
};

#[tokio::test]
async fn a_provider_that_hangs_ends_at_the_time_limit() {
    each(cases(), |case| async move {
        let mut faults = vec![Fault::Hang];
        if case.stream == Streaming::Pieces {
            faults.push(Fault::HangAfterEvents(4));
        }
        for broken in faults {
            let server = case.server([long().fault(broken)]).await;
            let run = case
                .run(&server)
                .time_limit(Duration::from_secs(1))
                .user("hi");
            let outcome = run.await.unwrap();
            let End::Incomplete { reason, .. } = &outcome.end else {
                panic!("{:?}", outcome.end)
            };
            assert_eq!(*reason, IncompleteReason::TimeLimit);
            assert_eq!(outcome.session.items().len(), 1);
            server.assert_finished();
        }
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_hangs_can_be_left() {
    each(cases(), |case| async move {
        let server = case.server([fault(Fault::Hang)]).await;
        let cancel = Cancel::new();
        let run = case.run(&server).cancel(cancel.clone()).user("hi");
        let run = tokio::spawn(run.into_future());
        while server.received().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
        let outcome = run.await.unwrap().unwrap();
        assert!(matches!(outcome.end, End::Cancelled), "{:?}", outcome.end);
        assert_whole(&outcome);
    })
    .await;
    each(streamed(), |case| async move {
        let server = case.server([long().fault(Fault::HangAfterEvents(5))]).await;
        let mut run = case.run(&server).user("hi").start().unwrap();
        let mut heard = String::new();
        while let Some(event) = run.next().await {
            if let EventKind::TextDelta { text, .. } = event.kind {
                heard.push_str(&text);
                run.cancel().cancel();
            }
        }
        assert!(heard.starts_with('a'), "{heard}");
        let outcome = run.finish().await;
        assert!(matches!(outcome.end, End::Cancelled), "{:?}", outcome.end);
        assert_eq!(outcome.session.items().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_says_nothing_is_asked_again_and_one_that_falls_silent_is_not() {
    // Only the wait that is tested is short: this machine may be busy.
    let short = Duration::from_millis(300);
    let before_the_answer = Timeouts {
        header: short,
        ..Timeouts::default()
    };
    let inside_of_it = Timeouts {
        idle: short,
        ..Timeouts::default()
    };
    each(streamed(), move |case| async move {
        let run = |server: &ScriptedServer, waits| match case.provider {
            Provider::Chat | Provider::OtherChat => case.run_of(chat(server).timeouts(waits)),
            Provider::Responses => case.run_of(responses(server).timeouts(waits)),
            Provider::Anthropic => case.run_of(anthropic(server).timeouts(waits)),
            Provider::Ollama => case.run_of(ollama(server).timeouts(waits)),
        };
        let server = case
            .server([fault(Fault::Hang), say("hello").forever()])
            .await;
        let outcome = run(&server, before_the_answer).user("hi").await.unwrap();
        assert_eq!(outcome.text, "hello", "{:?}", outcome.end);
        let server = case.server([long().fault(Fault::HangAfterEvents(5))]).await;
        let outcome = run(&server, inside_of_it).user("hi").await.unwrap();
        let (error, attempts) = model_error(&outcome);
        assert_eq!((error.kind, attempts), (ModelErrorKind::Timeout, 1));
    })
    .await;
}

//! Backends that fail too often are left alone.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use haft_core::{Model as _, ModelErrorKind};
use haft_models::pool::{BreakerSettings, Pool, Standing};
use tokio::time::advance;

use super::common::events::events_of;
use super::{Mood, Puppet, answer, asked, error, heard, quick};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_backend_that_keeps_failing_is_not_asked_and_its_users_hear_how_long() {
    let only = Puppet::failing("only", ModelErrorKind::ServerError);
    let pool = Pool::new(only.member_with(quick()), []);
    for _ in 0..2 {
        let told = answer(&pool).await.unwrap_err();
        assert_eq!(told.kind, ModelErrorKind::ServerError);
    }
    assert!(!pool.is_usable());
    advance(4 * SECOND).await;
    for _ in 0..5 {
        let told = answer(&pool).await.unwrap_err();
        assert_eq!(told.kind, ModelErrorKind::Unreachable);
        assert!(told.kind.is_retryable());
        assert_eq!(told.retry_after, Some(6 * SECOND), "the true rest");
        assert!(told.message.contains("try again in 6.0s"), "{told}");
    }
    assert_eq!(only.asked(), 2);
    advance(6 * SECOND).await;
    assert!(pool.is_usable());
    only.becomes(Mood::Answers);
    assert_eq!(answer(&pool).await.unwrap(), "only");
    assert_eq!(pool.members()[0].standing(), Standing::Ready);
}

#[tokio::test(start_paused = true)]
async fn the_next_backend_answers_at_once_while_the_first_is_left_alone() {
    let near = Puppet::failing("near", ModelErrorKind::Unreachable);
    let far = Puppet::new("far", Mood::Answers);
    let pool = Arc::new(Pool::new(near.member_with(quick()), [far.member()]));
    for _ in 0..10 {
        assert_eq!(heard(&pool).await, (Ok("far".into()), Some("far".into())));
    }
    assert_eq!((near.asked(), far.asked()), (2, 10));
    advance(10 * SECOND).await;
    assert_eq!(
        answer(&pool).await.unwrap(),
        "far",
        "the trial costs nobody his answer"
    );
    assert_eq!(near.asked(), 3);
    near.becomes(Mood::Answers);
    advance(19 * SECOND).await;
    assert_eq!(answer(&pool).await.unwrap(), "far", "it is open for longer");
    advance(SECOND).await;
    assert_eq!(heard(&pool).await, (Ok("near".into()), None));
}

#[tokio::test]
async fn mistakes_of_the_client_open_nothing() {
    for kind in [
        ModelErrorKind::InvalidRequest,
        ModelErrorKind::ContextLength,
        ModelErrorKind::PromptRefused,
        ModelErrorKind::RateLimit,
        ModelErrorKind::Unauthorized,
    ] {
        let only = Puppet::failing("only", kind);
        let pool = Pool::new(only.member_with(quick()), []);
        for _ in 0..10 {
            assert_eq!(answer(&pool).await.unwrap_err().kind, kind);
        }
        assert_eq!(only.asked(), 10);
    }
}

#[tokio::test]
async fn answers_that_break_off_count_as_failures() {
    let broken = error(ModelErrorKind::Unreachable);
    for mood in [Mood::BreaksAfter(2, broken), Mood::EndsAfter(2)] {
        let only = Puppet::new("only", mood);
        let pool = Pool::new(only.member_with(quick()), []);
        for _ in 0..2 {
            let mut stream = pool.send(asked("hi")).await.unwrap();
            while stream.next().await.is_some() {}
        }
        assert!(pool.send(asked("hi")).await.is_err());
        assert_eq!(only.asked(), 2);
    }
}

#[tokio::test]
async fn an_answer_that_nobody_waited_for_says_nothing() {
    let only = Puppet::new("only", Mood::HangsAfter(1));
    let pool = Pool::new(only.member_with(quick()), []);
    for _ in 0..10 {
        let mut stream = pool.send(asked("hi")).await.unwrap();
        assert!(stream.next().await.is_some());
    }
    assert_eq!(pool.members()[0].standing(), Standing::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_trial_that_is_cancelled_leaves_room_for_the_next() {
    let only = Puppet::failing("only", ModelErrorKind::Timeout);
    let pool = Pool::new(only.member_with(quick()), []);
    for _ in 0..2 {
        assert!(answer(&pool).await.is_err());
    }
    advance(10 * SECOND).await;
    only.becomes(Mood::Hangs);
    let trial = tokio::time::timeout(SECOND, answer(&pool)).await;
    assert!(trial.is_err(), "the client went away");
    assert_eq!(pool.members()[0].standing(), Standing::Due);
    only.becomes(Mood::Answers);
    assert_eq!(answer(&pool).await.unwrap(), "only");
}

#[tokio::test(start_paused = true)]
async fn only_one_trial_goes_at_a_time() {
    let only = Puppet::failing("only", ModelErrorKind::Timeout);
    let pool = Arc::new(Pool::new(only.member_with(quick()), []));
    for _ in 0..2 {
        assert!(answer(&pool).await.is_err());
    }
    advance(10 * SECOND).await;
    only.becomes(Mood::Hangs);
    let trial = tokio::spawn({
        let pool = Arc::clone(&pool);
        async move { answer(&pool).await }
    });
    tokio::task::yield_now().await;
    assert_eq!(only.asked(), 3);
    assert!(!pool.is_usable());
    let told = answer(&pool).await.unwrap_err();
    assert_eq!(told.retry_after, Some(SECOND));
    assert_eq!(only.asked(), 3);
    trial.abort();
}

#[tokio::test(start_paused = true)]
async fn when_all_are_left_alone_the_shortest_wait_is_told() {
    let near = Puppet::failing("near", ModelErrorKind::Unreachable);
    let far = Puppet::failing("far", ModelErrorKind::Unreachable);
    let short = BreakerSettings {
        open: 3 * SECOND,
        ..quick()
    };
    let pool = Pool::new(near.member_with(quick()), [far.member_with(short)]);
    for _ in 0..2 {
        assert!(answer(&pool).await.is_err());
    }
    let told = answer(&pool).await.unwrap_err();
    assert_eq!(told.retry_after, Some(3 * SECOND));
    assert_eq!((near.asked(), far.asked()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn the_wait_that_the_backend_asks_for_is_kept() {
    let failure = error(ModelErrorKind::ServerError).retry_after(25 * SECOND);
    let only = Puppet::new("only", Mood::Fails(failure));
    let pool = Pool::new(only.member_with(quick()), []);
    for _ in 0..2 {
        assert!(answer(&pool).await.is_err());
    }
    advance(24 * SECOND).await;
    let told = answer(&pool).await.unwrap_err();
    assert_eq!((told.retry_after, only.asked()), (Some(SECOND), 2));
}

#[tokio::test(start_paused = true)]
async fn how_much_fits_is_what_fits_into_the_one_that_will_be_asked() {
    use haft_core::Capabilities;
    let room = |tokens| Capabilities {
        context_tokens: Some(tokens),
        ..Capabilities::default()
    };
    let down = Mood::Fails(error(ModelErrorKind::Unreachable));
    let near = Puppet::able("near", down, room(1000));
    let far = Puppet::able("far", Mood::Answers, room(100));
    let pool = Pool::new(near.member_with(quick()), [far.member()]);
    assert_eq!(pool.capabilities().context_tokens, Some(1000));
    for _ in 0..2 {
        answer(&pool).await.unwrap();
    }
    assert_eq!(pool.capabilities().context_tokens, Some(100));
    advance(10 * SECOND).await;
    assert_eq!(pool.capabilities().context_tokens, Some(1000));
}

#[tokio::test]
async fn an_answer_passes_unchanged_whatever_watches_over_it() {
    let only = Puppet::new("only", Mood::Answers);
    let bare = events_of(&only, asked("hi")).await;
    let pool = Pool::new(only.member_with(quick()), []);
    assert_eq!(events_of(&pool, asked("hi")).await, bare);
}

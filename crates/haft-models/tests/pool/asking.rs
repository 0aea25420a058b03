//! Who is asked, and what is said when nobody answers.

use std::sync::Arc;
use std::time::Duration;

use haft_core::{Capabilities, ContentPart, Item, Message, Model as _, ModelErrorKind, Role};
use haft_models::pool::Pool;

use super::common::events::events_of;
use super::{Mood, Puppet, answer, answer_to, asked, error, heard};

#[tokio::test]
async fn another_is_asked_for_whatever_another_can_cure() {
    for kind in [
        ModelErrorKind::Unreachable,
        ModelErrorKind::Timeout,
        ModelErrorKind::ServerError,
        ModelErrorKind::RateLimit,
        ModelErrorKind::QuotaExhausted,
        ModelErrorKind::Unauthorized,
        ModelErrorKind::NotFound,
        ModelErrorKind::Protocol,
    ] {
        for mood in [Mood::Fails(error(kind)), Mood::BreaksAfter(0, error(kind))] {
            let (near, far) = (Puppet::new("near", mood), Puppet::new("far", Mood::Answers));
            let pool = Arc::new(Pool::new(near.member(), [far.member()]));
            let (said, by) = heard(&pool).await;
            assert_eq!(said, Ok("far".into()), "{kind:?}");
            assert_eq!(by.as_deref(), Some("far"));
            assert_eq!((near.asked(), far.asked()), (1, 1), "each once");
        }
    }
}

#[tokio::test]
async fn nobody_else_is_asked_with_a_request_that_is_itself_at_fault() {
    for kind in [
        ModelErrorKind::ContextLength,
        ModelErrorKind::InvalidRequest,
        ModelErrorKind::PromptRefused,
    ] {
        for mood in [Mood::Fails(error(kind)), Mood::BreaksAfter(0, error(kind))] {
            let (near, far) = (Puppet::new("near", mood), Puppet::new("far", Mood::Answers));
            let pool = Pool::new(near.member(), [far.member()]);
            assert_eq!(answer(&pool).await, Err(error(kind)));
            assert_eq!((near.asked(), far.asked()), (1, 0));
        }
    }
}

#[tokio::test]
async fn nobody_else_is_asked_once_something_of_an_answer_came() {
    for events in 1..4 {
        let broken = error(ModelErrorKind::Unreachable);
        let near = Puppet::new("near", Mood::BreaksAfter(events, broken.clone()));
        let far = Puppet::new("far", Mood::Answers);
        let pool = Pool::new(near.member(), [far.member()]);
        let (told, failure) = events_of(&pool, asked("hi")).await;
        assert_eq!((told.len(), failure), (events, Some(broken)));
        assert_eq!(far.asked(), 0);
    }
}

#[tokio::test]
async fn a_stream_without_anything_in_it_is_no_answer() {
    let near = Puppet::new("near", Mood::EndsAfter(0));
    let far = Puppet::new("far", Mood::Answers);
    let pool = Pool::new(near.member(), [far.member()]);
    assert_eq!(answer(&pool).await.unwrap(), "far");
}

#[tokio::test]
async fn the_first_is_not_worth_a_word() {
    let (near, far) = (
        Puppet::new("near", Mood::Answers),
        Puppet::new("far", Mood::Answers),
    );
    let pool = Arc::new(Pool::new(near.member(), [far.member()]));
    assert_eq!(heard(&pool).await, (Ok("near".into()), None));
    assert_eq!(far.asked(), 0);
}

#[tokio::test]
async fn a_pool_of_one_says_what_its_backend_says() {
    let failure = error(ModelErrorKind::RateLimit).retry_after(Duration::from_secs(7));
    let only = Puppet::new("only", Mood::Fails(failure.clone()));
    let pool = Pool::new(only.member(), []);
    for _ in 0..3 {
        assert_eq!(answer(&pool).await, Err(failure.clone()));
    }
    assert_eq!(only.asked(), 3, "there is nobody to prefer");
}

#[tokio::test]
async fn when_all_fail_the_first_failure_that_may_pass_is_told() {
    let refused = Puppet::failing("a", ModelErrorKind::Unauthorized);
    let limited = error(ModelErrorKind::RateLimit).retry_after(Duration::from_secs(20));
    let limited = Puppet::new("b", Mood::Fails(limited));
    let broken = error(ModelErrorKind::ServerError).retry_after(Duration::from_secs(5));
    let broken = Puppet::new("c", Mood::Fails(broken));
    let pool = Pool::new(limited.member(), [broken.member()]);
    let told = answer(&pool).await.unwrap_err();
    assert_eq!(told.kind, ModelErrorKind::RateLimit);
    assert_eq!(
        told.message,
        "it is RateLimit (another backend failed as well)"
    );
    let soonest = Some(Duration::from_secs(5));
    assert_eq!(told.retry_after, soonest, "one of them may work by then");

    let pool = Pool::new(refused.member(), [limited.member(), broken.member()]);
    let told = answer(&pool).await.unwrap_err();
    assert_eq!(
        told.kind,
        ModelErrorKind::RateLimit,
        "a refused key stays refused"
    );
    assert_eq!(
        told.retry_after, None,
        "nobody knows when all of them may work"
    );

    let pool = Pool::new(refused.member(), [refused.member()]);
    let told = answer(&pool).await.unwrap_err();
    assert_eq!(told.kind, ModelErrorKind::Unauthorized);
}

#[tokio::test(start_paused = true)]
async fn one_that_wants_to_be_left_alone_is_asked_last() {
    let limited = error(ModelErrorKind::RateLimit).retry_after(Duration::from_secs(20));
    let near = Puppet::new("near", Mood::Fails(limited));
    let far = Puppet::new("far", Mood::Answers);
    let pool = Pool::new(near.member(), [far.member()]);
    for _ in 0..5 {
        assert_eq!(answer(&pool).await.unwrap(), "far");
    }
    assert_eq!(near.asked(), 1, "it said when to come back");
    far.becomes(Mood::Fails(error(ModelErrorKind::Unreachable)));
    assert!(answer(&pool).await.is_err());
    assert_eq!(near.asked(), 1, "somebody else was asked");
    // Both rest: whoever asks may still be luckier than those before him.
    let limited = error(ModelErrorKind::RateLimit).retry_after(Duration::from_secs(30));
    far.becomes(Mood::Fails(limited));
    assert!(answer(&pool).await.is_err());
    near.becomes(Mood::Answers);
    assert_eq!(answer(&pool).await.unwrap(), "near");
    far.becomes(Mood::Answers);
    assert_eq!(
        answer(&pool).await.unwrap(),
        "near",
        "it has shown that it works"
    );
}

#[tokio::test(start_paused = true)]
async fn one_that_was_left_alone_long_enough_is_asked_first_again() {
    let limited = error(ModelErrorKind::RateLimit).retry_after(Duration::from_secs(20));
    let near = Puppet::new("near", Mood::Fails(limited));
    let far = Puppet::new("far", Mood::Answers);
    let pool = Pool::new(near.member(), [far.member()]);
    assert_eq!(answer(&pool).await.unwrap(), "far");
    near.becomes(Mood::Answers);
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(answer(&pool).await.unwrap(), "near");
}

fn picture() -> Item {
    let mut message = Message::new(Role::User, "what is this?");
    message.content.push(ContentPart::InputImage {
        image_url: "data:image/png;base64,AAAA".into(),
        detail: None,
    });
    Item::Message(message)
}

#[tokio::test]
async fn one_that_cannot_take_what_a_request_holds_is_passed_over() {
    let sees = Capabilities {
        image_input: true,
        ..Capabilities::default()
    };
    let down = Mood::Fails(error(ModelErrorKind::Unreachable));
    let near = Puppet::able("near", down, sees.clone());
    let blind = Puppet::new("blind", Mood::Answers);
    let far = Puppet::able("far", Mood::Answers, sees);
    let pool = Pool::new(near.member(), [blind.member(), far.member()]);
    assert!(pool.unsupported(&picture()).is_none(), "as the first says");
    let mut request = asked("");
    request.conversation = vec![picture()].into();
    assert_eq!(answer_to(&pool, request.clone()).await.unwrap(), "far");
    assert_eq!(blind.asked(), 0);
    let pool = Pool::new(near.member(), [blind.member()]);
    let told = answer_to(&pool, request).await.unwrap_err();
    assert_eq!(
        told,
        error(ModelErrorKind::Unreachable),
        "the truth about the one that can"
    );
    assert_eq!(answer(&pool).await.unwrap(), "blind", "words it can take");
}

#[test]
fn requests_are_written_so_that_all_of_them_can_read_them() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let _guard = runtime.enter();
    let able = Capabilities {
        structured_output: true,
        structured_output_with_tools: true,
        image_input: true,
        parallel_calls: true,
        context_tokens: Some(1000),
        ..Capabilities::default()
    };
    let plain = Capabilities {
        structured_output: true,
        context_tokens: Some(10),
        ..Capabilities::default()
    };
    let near = Puppet::able("near", Mood::Answers, able.clone());
    let far = Puppet::able("far", Mood::Answers, plain);
    assert_eq!(Pool::new(near.member(), []).capabilities(), able);
    let pool = Pool::new(near.member(), [far.member()]);
    let both = Capabilities {
        structured_output_with_tools: false,
        ..able
    };
    assert_eq!(pool.capabilities(), both);
    assert_eq!((pool.name(), pool.provider()), ("near", "puppet"));
}

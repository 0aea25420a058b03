//! A conversation stays where its prompt is known.

use std::time::Duration;

use haft_core::{Item, ModelErrorKind, ModelRequest};
use haft_models::pool::Pool;
use tokio::time::advance;

use super::{Mood, Puppet, answer_to, asked, error, quick};

/// The second request of the conversation that begins so.
fn further(words: &str) -> ModelRequest {
    let items = vec![
        Item::user(words),
        Item::assistant("far"),
        Item::user("and?"),
    ];
    ModelRequest {
        conversation: items.into(),
        ..ModelRequest::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_stays_with_a_stand_in_that_is_well() {
    let near = Puppet::failing("near", ModelErrorKind::Unreachable);
    let far = Puppet::new("far", Mood::Answers);
    let pool = Pool::new(near.member_with(quick()), [far.member_with(quick())]);
    assert_eq!(answer_to(&pool, asked("one")).await.unwrap(), "far");
    near.becomes(Mood::Answers);
    assert_eq!(answer_to(&pool, further("one")).await.unwrap(), "far");
    assert_eq!(answer_to(&pool, asked("two")).await.unwrap(), "near");
    assert_eq!(answer_to(&pool, further("two")).await.unwrap(), "near");
    assert_eq!(answer_to(&pool, further("one")).await.unwrap(), "far");
    let again = answer_to(&pool, asked("one")).await.unwrap();
    assert_eq!(
        again, "near",
        "the same first words are another conversation"
    );
}

#[tokio::test(start_paused = true)]
async fn it_comes_back_when_the_stand_in_fails_or_it_has_been_silent_for_long() {
    let near = Puppet::failing("near", ModelErrorKind::Unreachable);
    let far = Puppet::new("far", Mood::Answers);
    let pool = Pool::new(near.member_with(quick()), [far.member_with(quick())]);
    assert_eq!(answer_to(&pool, asked("one")).await.unwrap(), "far");
    assert_eq!(answer_to(&pool, asked("two")).await.unwrap(), "far");
    near.becomes(Mood::Answers);
    advance(Duration::from_secs(10)).await;
    far.becomes(Mood::Fails(error(ModelErrorKind::ServerError)));
    assert_eq!(answer_to(&pool, further("one")).await.unwrap(), "near");
    far.becomes(Mood::Answers);
    let now_here = answer_to(&pool, further("one")).await.unwrap();
    assert_eq!(now_here, "near", "its prompt is known here now");
    advance(Duration::from_mins(11)).await;
    assert_eq!(answer_to(&pool, further("two")).await.unwrap(), "near");
}

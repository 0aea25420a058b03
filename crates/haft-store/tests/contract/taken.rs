//! What is done only once.

use haft_core::Store;

use crate::common::{alice, bob};

kept_by_both!(
    a_word_is_taken_once,
    the_words_of_one_owner_are_nothing_to_another,
    of_many_who_come_at_once_one_takes_it,
    first_claim_keeps_its_note,
    later_note_of_the_server_replaces_the_earlier_one,
);

async fn a_word_is_taken_once(store: &dyn Store) {
    assert_eq!(store.take_once(&alice(), "a", "note").await, Ok(true));
    assert_eq!(store.take_once(&alice(), "a", "note").await, Ok(false));
    assert_eq!(store.take_once(&alice(), "b", "note").await, Ok(true));
}

async fn the_words_of_one_owner_are_nothing_to_another(store: &dyn Store) {
    assert_eq!(store.take_once(&alice(), "a", "note").await, Ok(true));
    assert_eq!(store.take_once(&bob(), "a", "note").await, Ok(true));
}

async fn of_many_who_come_at_once_one_takes_it(store: &dyn Store) {
    let owner = alice();
    let take = || store.take_once(&owner, "a", "note");
    let (one, two, three, four) = tokio::join!(take(), take(), take(), take());
    let taken = [one, two, three, four].into_iter();
    assert_eq!(taken.filter(|taken| *taken == Ok(true)).count(), 1);
}

async fn first_claim_keeps_its_note(store: &dyn Store) {
    let keys = || vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
    assert_eq!(store.taken(&alice(), keys()).await, Ok(Vec::new()));
    store.take_once(&alice(), "a", "one").await.unwrap();
    store.take_once(&alice(), "a", "two").await.unwrap();
    store.take_once(&alice(), "c", "three").await.unwrap();
    let claimed = |key: &str, note: &str| (key.to_owned(), Some(note.to_owned()));
    assert_eq!(
        store.taken(&alice(), keys()).await,
        Ok(vec![claimed("a", "one"), claimed("c", "three")])
    );
    assert_eq!(store.taken(&bob(), keys()).await, Ok(Vec::new()));
}

async fn later_note_of_the_server_replaces_the_earlier_one(store: &dyn Store) {
    assert_eq!(store.server_note("a").await, Ok(None));
    store.put_server_note("a", "one").await.unwrap();
    store.put_server_note("b", "two").await.unwrap();
    store.put_server_note("a", "three").await.unwrap();
    assert_eq!(store.server_note("a").await, Ok(Some("three".to_owned())));
    assert_eq!(store.server_note("b").await, Ok(Some("two".to_owned())));
}

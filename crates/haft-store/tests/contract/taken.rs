//! What is done only once.

use haft_core::Store;

use crate::common::{alice, bob};

kept_by_both!(
    a_word_is_taken_once,
    the_words_of_one_owner_are_nothing_to_another,
    of_many_who_come_at_once_one_takes_it,
);

async fn a_word_is_taken_once(store: &dyn Store) {
    assert_eq!(store.take_once(&alice(), "a").await, Ok(true));
    assert_eq!(store.take_once(&alice(), "a").await, Ok(false));
    assert_eq!(store.take_once(&alice(), "b").await, Ok(true));
}

async fn the_words_of_one_owner_are_nothing_to_another(store: &dyn Store) {
    assert_eq!(store.take_once(&alice(), "a").await, Ok(true));
    assert_eq!(store.take_once(&bob(), "a").await, Ok(true));
}

async fn of_many_who_come_at_once_one_takes_it(store: &dyn Store) {
    let owner = alice();
    let take = || store.take_once(&owner, "a");
    let (one, two, three, four) = tokio::join!(take(), take(), take(), take());
    let taken = [one, two, three, four].into_iter();
    assert_eq!(taken.filter(|taken| *taken == Ok(true)).count(), 1);
}

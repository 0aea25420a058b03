//! The events of a response can be read again.

use haft_core::{Store, StoreError};

use crate::common::{alice, event, json, put, response, unfinished};

kept_by_both!(
    events_come_back_in_the_order_of_their_numbers,
    events_can_be_read_behind_a_number_and_in_pieces,
    events_of_an_unknown_response_are_not_kept,
    a_later_state_of_a_response_keeps_its_events,
    an_event_that_is_there_already_can_be_written_again,
    an_event_never_replaces_another_one,
    a_number_that_is_too_large_is_refused_and_nothing_of_it_written,
);

async fn append(store: &dyn Store, numbers: &[u64]) {
    let events = numbers.iter().copied().map(event).collect();
    store.append_events(&alice(), "r", events).await.unwrap();
}

async fn numbers(store: &dyn Store, after: Option<u64>, limit: usize) -> Vec<u64> {
    let events = store.events(&alice(), "r", after, limit).await.unwrap();
    events.iter().map(|event| event.sequence_number).collect()
}

async fn events_come_back_in_the_order_of_their_numbers(store: &dyn Store) {
    put(store, unfinished("r")).await;
    append(store, &[4, 0, 2]).await;
    append(store, &[]).await;
    append(store, &[1]).await;
    assert_same!(
        store.events(&alice(), "r", None, usize::MAX).await.unwrap(),
        [event(0), event(1), event(2), event(4)]
    );
}

async fn events_can_be_read_behind_a_number_and_in_pieces(store: &dyn Store) {
    put(store, unfinished("r")).await;
    append(store, &[0, 1, 2, 3, 5]).await;
    assert_eq!(numbers(store, None, 2).await, [0, 1]);
    assert_eq!(numbers(store, Some(1), 2).await, [2, 3]);
    assert_eq!(numbers(store, Some(0), 100).await, [1, 2, 3, 5]);
    assert_eq!(numbers(store, Some(4), 100).await, [5]);
    assert!(numbers(store, Some(5), 100).await.is_empty());
    assert!(numbers(store, Some(u64::MAX), 100).await.is_empty());
    assert!(numbers(store, None, 0).await.is_empty());
}

async fn events_of_an_unknown_response_are_not_kept(store: &dyn Store) {
    append(store, &[0]).await;
    put(store, response("r")).await;
    assert!(numbers(store, None, 10).await.is_empty());
}

async fn a_later_state_of_a_response_keeps_its_events(store: &dyn Store) {
    put(store, unfinished("r")).await;
    append(store, &[0, 1]).await;
    put(store, response("r")).await;
    assert_eq!(numbers(store, None, 10).await, [0, 1]);
}

async fn an_event_that_is_there_already_can_be_written_again(store: &dyn Store) {
    put(store, unfinished("r")).await;
    append(store, &[0, 1]).await;
    append(store, &[0, 1, 2, 2]).await;
    let events = store.events(&alice(), "r", None, 10).await.unwrap();
    assert_same!(events, [event(0), event(1), event(2)]);
}

async fn an_event_never_replaces_another_one(store: &dyn Store) {
    put(store, unfinished("r")).await;
    append(store, &[0, 1]).await;
    let mut other = event(1);
    other.json = json(r#"{"other":true}"#);
    let refused = store
        .append_events(&alice(), "r", vec![event(2), other.clone()])
        .await;
    let text = "the log of response `r` has another event with the number `1`: go on behind its \
                last one";
    assert_eq!(refused, Err(StoreError::Failed(text.to_owned())));
    // Nor one of the same list.
    other.sequence_number = 3;
    let refused = store
        .append_events(&alice(), "r", vec![event(3), other])
        .await;
    assert!(matches!(refused, Err(StoreError::Failed(_))));
    let events = store.events(&alice(), "r", None, 10).await.unwrap();
    assert_same!(events, [event(0), event(1)]);
}

async fn a_number_that_is_too_large_is_refused_and_nothing_of_it_written(store: &dyn Store) {
    put(store, unfinished("r")).await;
    let events = vec![event(0), event(u64::MAX)];
    let refused = store.append_events(&alice(), "r", events).await;
    assert!(matches!(refused, Err(StoreError::Failed(_))));
    assert!(numbers(store, None, 10).await.is_empty());
}

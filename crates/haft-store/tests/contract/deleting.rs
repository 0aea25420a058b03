//! What is deleted is gone, but for those who continue it.

use haft_core::{Retention, Store};

use crate::common::{
    alice, appended_to, chain_ids, continuing, conversation, event, has, item, put, response,
    tombstone,
};

kept_by_both!(
    a_deleted_response_is_gone_with_its_items_and_events,
    deleting_twice_finds_nothing,
    a_deleted_response_that_is_continued_shows_nothing_of_itself,
    what_was_left_of_a_response_goes_with_the_last_that_continues_it,
    what_is_left_of_a_response_stays_while_another_branch_continues_it,
    deleting_from_the_oldest_to_the_newest_leaves_nothing,
    deleting_the_middle_of_a_chain_keeps_both_ends,
    a_response_that_continues_another_one_now_lets_the_former_go,
    a_deleted_response_that_is_written_again_is_there_again_without_its_events,
    deleting_a_response_keeps_the_conversation_that_it_was_added_to,
);

async fn delete(store: &dyn Store, id: &str) {
    assert!(store.delete_response(&alice(), id).await.unwrap());
}

/// Whether the store holds no JSON at all: a retention of no bytes would find something.
async fn is_empty(store: &dyn Store) -> bool {
    // A response of two bytes; if nothing else is there, two bytes are not too many.
    let probe = haft_core::StoredResponse {
        resource: crate::common::json("{}"),
        input: Vec::new(),
        output: Vec::new(),
        ..response("probe")
    };
    put(store, probe).await;
    let retention = Retention {
        max_bytes: Some(2),
        ..Retention::default()
    };
    let cleaned = store.clean(retention, 0, 1).await.unwrap();
    cleaned.responses == 0
}

async fn a_deleted_response_is_gone_with_its_items_and_events(store: &dyn Store) {
    put(store, response("r")).await;
    store
        .append_events(&alice(), "r", vec![event(0)])
        .await
        .unwrap();
    delete(store, "r").await;
    assert!(!has(store, "r").await);
    assert!(store.item(&alice(), "r_in").await.unwrap().is_none());
    assert!(store.item(&alice(), "r_out").await.unwrap().is_none());
    let events = store.events(&alice(), "r", None, 10).await.unwrap();
    assert!(events.is_empty());
    assert!(is_empty(store).await);
}

async fn deleting_twice_finds_nothing(store: &dyn Store) {
    put(store, response("a")).await;
    put(store, continuing("a", "b")).await;
    delete(store, "a").await;
    assert!(!store.delete_response(&alice(), "a").await.unwrap());
    delete(store, "b").await;
    assert!(!store.delete_response(&alice(), "b").await.unwrap());
}

async fn a_deleted_response_that_is_continued_shows_nothing_of_itself(store: &dyn Store) {
    put(store, response("a")).await;
    store
        .append_events(&alice(), "a", vec![event(0)])
        .await
        .unwrap();
    put(store, continuing("a", "b")).await;
    delete(store, "a").await;
    assert!(!has(store, "a").await);
    assert!(store.item(&alice(), "a_in").await.unwrap().is_none());
    assert!(store.item(&alice(), "b_in").await.unwrap().is_some());
    // Its run may not know yet.
    store
        .append_events(&alice(), "a", vec![event(1)])
        .await
        .unwrap();
    let events = store.events(&alice(), "a", None, 10).await.unwrap();
    assert!(events.is_empty());
    assert_same!(
        store.chain(&alice(), "b").await.unwrap().unwrap(),
        [tombstone(response("a")), continuing("a", "b")]
    );
}

async fn what_was_left_of_a_response_goes_with_the_last_that_continues_it(store: &dyn Store) {
    put(store, response("a")).await;
    put(store, continuing("a", "b")).await;
    put(store, continuing("b", "c")).await;
    delete(store, "a").await;
    delete(store, "b").await;
    assert_eq!(chain_ids(store, "c").await.unwrap(), ["a", "b", "c"]);
    delete(store, "c").await;
    // Were anything left of `a` and `b`, this chain would find it.
    put(store, continuing("b", "d")).await;
    assert_eq!(chain_ids(store, "d").await.unwrap(), ["d"]);
    delete(store, "d").await;
    assert!(is_empty(store).await);
}

async fn what_is_left_of_a_response_stays_while_another_branch_continues_it(store: &dyn Store) {
    put(store, response("root")).await;
    put(store, continuing("root", "left")).await;
    put(store, continuing("root", "right")).await;
    put(store, continuing("right", "leaf")).await;
    delete(store, "root").await;
    delete(store, "right").await;
    delete(store, "left").await;
    assert_eq!(
        chain_ids(store, "leaf").await.unwrap(),
        ["root", "right", "leaf"]
    );
    delete(store, "leaf").await;
    assert!(is_empty(store).await);
}

async fn deleting_from_the_oldest_to_the_newest_leaves_nothing(store: &dyn Store) {
    put(store, response("r0")).await;
    for number in 1..50 {
        let previous = format!("r{}", number - 1);
        put(store, continuing(&previous, &format!("r{number}"))).await;
    }
    for number in 0..50 {
        delete(store, &format!("r{number}")).await;
    }
    assert!(is_empty(store).await);
}

async fn deleting_the_middle_of_a_chain_keeps_both_ends(store: &dyn Store) {
    put(store, response("a")).await;
    put(store, continuing("a", "b")).await;
    put(store, continuing("b", "c")).await;
    delete(store, "b").await;
    delete(store, "c").await;
    assert_eq!(chain_ids(store, "a").await.unwrap(), ["a"]);
    delete(store, "a").await;
    assert!(is_empty(store).await);
}

async fn a_response_that_continues_another_one_now_lets_the_former_go(store: &dyn Store) {
    put(store, response("a")).await;
    put(store, continuing("a", "b")).await;
    put(store, continuing("b", "c")).await;
    delete(store, "a").await;
    delete(store, "b").await;
    put(store, response("c")).await;
    delete(store, "c").await;
    assert!(is_empty(store).await);
}

async fn a_deleted_response_that_is_written_again_is_there_again_without_its_events(
    store: &dyn Store,
) {
    put(store, response("a")).await;
    store
        .append_events(&alice(), "a", vec![event(0)])
        .await
        .unwrap();
    put(store, continuing("a", "b")).await;
    delete(store, "a").await;
    put(store, response("a")).await;
    assert_same!(
        store.response(&alice(), "a").await.unwrap(),
        Some(response("a"))
    );
    assert!(store.item(&alice(), "a_in").await.unwrap().is_some());
    let events = store.events(&alice(), "a", None, 10).await.unwrap();
    assert!(events.is_empty());
}

async fn deleting_a_response_keeps_the_conversation_that_it_was_added_to(store: &dyn Store) {
    store
        .put_conversation(&alice(), conversation("c"))
        .await
        .unwrap();
    let is_added = store
        .put_response(&alice(), response("r"), appended_to("c"))
        .await
        .unwrap();
    assert!(is_added);
    delete(store, "r").await;
    let items = store.conversation_items(&alice(), "c").await.unwrap();
    assert_same!(items, Some([item("r_in"), item("r_out")]));
    assert!(store.item(&alice(), "r_in").await.unwrap().is_some());
}

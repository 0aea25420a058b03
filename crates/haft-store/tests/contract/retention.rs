//! What is too old or too much goes, the oldest first.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haft_core::{Alongside, Cleaned, Retention, Store, StoredResponse};

use crate::common::{
    alice, bob, chain_ids, continuing, conversation, event, has, item, json, made_at, put,
    response, tombstone, unfinished,
};

kept_by_both!(
    without_a_retention_nothing_goes,
    responses_older_than_the_age_go,
    a_cleaning_takes_no_more_than_its_batch,
    an_unfinished_response_never_goes,
    a_response_that_a_younger_one_continues_stays_for_that_one,
    a_chain_goes_wholly_when_its_youngest_goes,
    what_a_response_takes_along_counts_for_the_batch,
    the_oldest_go_until_the_rest_is_small_enough,
    items_events_and_conversations_count_as_bytes,
    checkpoints_and_traces_count_as_bytes,
    when_nothing_finished_is_left_too_much_is_no_reason_to_call_again,
    untouched_conversations_go,
    a_touched_conversation_stays,
);

fn age(seconds: u64) -> Retention {
    Retention {
        max_age: Some(Duration::from_secs(seconds)),
        ..Retention::default()
    }
}

fn bytes(bytes: u64) -> Retention {
    Retention {
        max_bytes: Some(bytes),
        ..Retention::default()
    }
}

fn cleaned(responses: u64, has_more: bool) -> Cleaned {
    Cleaned {
        responses,
        conversations: 0,
        has_more,
    }
}

/// A response of so many bytes.
fn sized(id: &str, created_at: i64, size: usize) -> StoredResponse {
    StoredResponse {
        resource: json(format!("\"{}\"", "x".repeat(size - 2))),
        input: Vec::new(),
        output: Vec::new(),
        ..made_at(created_at, response(id))
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

async fn without_a_retention_nothing_goes(store: &dyn Store) {
    put(store, response("r")).await;
    store
        .put_conversation(&alice(), conversation("c"))
        .await
        .unwrap();
    let outcome = store.clean(Retention::default(), i64::MAX, 10).await;
    assert_eq!(outcome.unwrap(), Cleaned::default());
    assert!(has(store, "r").await);
}

async fn responses_older_than_the_age_go(store: &dyn Store) {
    put(store, made_at(99, response("old"))).await;
    put(store, made_at(100, response("just"))).await;
    store
        .put_response(&bob(), made_at(50, response("bobs")), Alongside::default())
        .await
        .unwrap();
    let outcome = store.clean(age(100), 200, 10).await.unwrap();
    assert_eq!(outcome, cleaned(2, false));
    assert!(!has(store, "old").await);
    assert!(has(store, "just").await);
    assert!(store.response(&bob(), "bobs").await.unwrap().is_none());
    // Ages that no clock reaches, and times that none shows.
    let outcome = store.clean(age(u64::MAX), i64::MIN, 10).await.unwrap();
    assert_eq!(outcome, cleaned(0, false));
}

async fn a_cleaning_takes_no_more_than_its_batch(store: &dyn Store) {
    for number in 0..5 {
        put(store, made_at(number, response(&format!("r{number}")))).await;
    }
    assert_eq!(store.clean(age(0), 10, 2).await.unwrap(), cleaned(2, true));
    assert!(!has(store, "r1").await && has(store, "r2").await);
    assert_eq!(store.clean(age(0), 10, 0).await.unwrap(), cleaned(0, true));
    assert_eq!(store.clean(age(0), 10, 3).await.unwrap(), cleaned(3, false));
}

async fn an_unfinished_response_never_goes(store: &dyn Store) {
    put(store, made_at(0, unfinished("r"))).await;
    let retention = Retention {
        max_age: Some(Duration::ZERO),
        max_bytes: Some(0),
    };
    let outcome = store.clean(retention, 1_000, 10).await.unwrap();
    assert_eq!(outcome, cleaned(0, false));
    assert!(has(store, "r").await);
}

async fn a_response_that_a_younger_one_continues_stays_for_that_one(store: &dyn Store) {
    put(store, made_at(0, response("a"))).await;
    put(store, made_at(500, continuing("a", "b"))).await;
    let outcome = store.clean(age(100), 200, 10).await.unwrap();
    assert_eq!(outcome, cleaned(1, false));
    assert!(!has(store, "a").await);
    assert_same!(
        store.chain(&alice(), "b").await.unwrap().unwrap(),
        [
            tombstone(made_at(0, response("a"))),
            made_at(500, continuing("a", "b"))
        ]
    );
}

async fn a_chain_goes_wholly_when_its_youngest_goes(store: &dyn Store) {
    put(store, made_at(0, response("a"))).await;
    put(store, made_at(1, continuing("a", "b"))).await;
    put(store, made_at(2, continuing("b", "c"))).await;
    let outcome = store.clean(age(0), 10, 10).await.unwrap();
    assert_eq!(outcome, cleaned(3, false));
    put(store, continuing("c", "d")).await;
    assert_eq!(chain_ids(store, "d").await.unwrap(), ["d"]);
}

async fn what_a_response_takes_along_counts_for_the_batch(store: &dyn Store) {
    put(store, made_at(0, response("a"))).await;
    put(store, made_at(1, continuing("a", "b"))).await;
    put(store, made_at(2, continuing("b", "c"))).await;
    put(store, made_at(3, response("other"))).await;
    store.delete_response(&alice(), "a").await.unwrap();
    store.delete_response(&alice(), "b").await.unwrap();
    let outcome = store.clean(age(0), 10, 3).await.unwrap();
    assert_eq!(outcome, cleaned(1, true));
    assert!(has(store, "other").await);
}

async fn the_oldest_go_until_the_rest_is_small_enough(store: &dyn Store) {
    // Of the same second the one that was written first is older.
    put(store, sized("third", 20, 100)).await;
    put(store, sized("first", 10, 100)).await;
    put(store, sized("second", 10, 100)).await;
    put(store, sized("fourth", 30, 100)).await;
    let clean = async |limit| store.clean(bytes(limit), 1_000, 10).await.unwrap();
    assert_eq!(clean(400).await, cleaned(0, false));
    assert_eq!(clean(399).await, cleaned(1, false));
    assert!(!has(store, "first").await);
    assert_eq!(clean(150).await, cleaned(2, false));
    assert!(!has(store, "third").await);
    assert!(has(store, "fourth").await);
    // A later state counts instead of the earlier one.
    put(store, sized("fourth", 30, 50)).await;
    assert_eq!(clean(50).await, cleaned(0, false));
    assert_eq!(clean(49).await, cleaned(1, false));
}

async fn items_events_and_conversations_count_as_bytes(store: &dyn Store) {
    let mut used = 100;
    put(store, sized("r", 10, 100)).await;
    let mut with_item = sized("s", 20, 100);
    with_item.input = vec![item("x")];
    let item_bytes = item("x").json.get().len() as u64;
    used += 100 + item_bytes;
    put(store, with_item).await;
    store
        .append_events(&alice(), "s", vec![event(0)])
        .await
        .unwrap();
    used += event(0).json.get().len() as u64;
    let record = conversation("c");
    used += record.metadata.get().len() as u64;
    store.put_conversation(&alice(), record).await.unwrap();
    store
        .append_items(&alice(), "c", vec![item("x"), item("x")])
        .await
        .unwrap();
    used += 2 * item_bytes;
    let clean = async |limit| store.clean(bytes(limit), 1_000, 1).await.unwrap();
    assert_eq!(clean(used).await, cleaned(0, false));
    assert_eq!(clean(used - 1).await, cleaned(1, false));
    used -= 100;
    store.delete_item(&alice(), "c", "x").await.unwrap();
    used -= 2 * item_bytes;
    assert_eq!(clean(used).await, cleaned(0, false));
    store.delete_conversation(&alice(), "c").await.unwrap();
    used -= conversation("c").metadata.get().len() as u64;
    assert_eq!(clean(used).await, cleaned(0, false));
    assert_eq!(clean(used - 1).await, cleaned(1, false));
}

async fn checkpoints_and_traces_count_as_bytes(store: &dyn Store) {
    put(store, sized("r", 10, 100)).await;
    let unfinished = || StoredResponse {
        is_finished: false,
        ..sized("s", 20, 100)
    };
    for text in ["\"short\"", "\"longer than before\"", "\"checkpoint\""] {
        let alongside = Alongside {
            checkpoint: Some(json(text)),
            trace: Some(json(text)),
            ..Alongside::default()
        };
        let write = store.put_response(&alice(), unfinished(), alongside);
        assert!(write.await.unwrap());
        let noted = store.put_checkpoint(&alice(), "s", json(text), Vec::new());
        assert!(noted.await.unwrap());
    }
    let note = "\"checkpoint\"".len() as u64;
    let clean = async |limit| store.clean(bytes(limit), 1_000, 1).await.unwrap();
    assert_eq!(clean(200 + 2 * note).await, cleaned(0, false));
    assert_eq!(clean(200 + 2 * note - 1).await, cleaned(1, false));
    put(store, sized("s", 20, 100)).await;
    assert_eq!(clean(100 + note).await, cleaned(0, false));
    assert_eq!(clean(100 + note - 1).await, cleaned(1, false));
    assert!(store.trace(&alice(), "s").await.unwrap().is_none());
    put(store, sized("t", 20, 100)).await;
    assert_eq!(clean(100).await, cleaned(0, false));
}

async fn when_nothing_finished_is_left_too_much_is_no_reason_to_call_again(store: &dyn Store) {
    put(store, response("r")).await;
    put(store, unfinished("s")).await;
    let outcome = store.clean(bytes(0), 1_000, 1).await.unwrap();
    assert_eq!(outcome, cleaned(1, false));
}

async fn untouched_conversations_go(store: &dyn Store) {
    for id in ["c", "d"] {
        store
            .put_conversation(&alice(), conversation(id))
            .await
            .unwrap();
    }
    put(store, made_at(i64::MAX, response("r"))).await;
    let later = now() + 1_000;
    let outcome = store.clean(age(100), later, 1).await.unwrap();
    let one = Cleaned {
        conversations: 1,
        has_more: true,
        ..Cleaned::default()
    };
    assert_eq!(outcome, one);
    let outcome = store.clean(age(100), later, 10).await.unwrap();
    assert_eq!(
        outcome,
        Cleaned {
            has_more: false,
            ..one
        }
    );
    assert!(store.conversation(&alice(), "c").await.unwrap().is_none());
}

async fn a_touched_conversation_stays(store: &dyn Store) {
    // However long ago it was made.
    store
        .put_conversation(&alice(), conversation("c"))
        .await
        .unwrap();
    store
        .append_items(&alice(), "c", vec![item("x")])
        .await
        .unwrap();
    let outcome = store.clean(age(10_000), now() + 1_000, 10).await.unwrap();
    assert_eq!(outcome, Cleaned::default());
    assert!(store.conversation(&alice(), "c").await.unwrap().is_some());
}

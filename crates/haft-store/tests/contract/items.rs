//! An item is found by its id, wherever it is kept.

use haft_core::{Store, StoredResponse};

use crate::common::{alice, conversation, item, item_saying, put, response};

kept_by_both!(
    an_item_of_a_response_is_found,
    an_item_of_a_conversation_is_found,
    of_items_with_the_same_id_the_newest_is_found,
    when_the_newest_is_gone_the_next_newest_is_found,
    an_item_that_stands_unchanged_does_not_become_newer,
    an_item_of_a_deleted_conversation_is_not_found,
    a_deleted_item_of_a_conversation_is_not_found,
);

async fn find(store: &dyn Store, id: &str) -> Option<String> {
    let found = store.item(&alice(), id).await.unwrap();
    found.map(|item| item.json.get().to_owned())
}

fn with_input(id: &str, text: &str) -> StoredResponse {
    StoredResponse {
        input: vec![item_saying("x", text)],
        ..response(id)
    }
}

fn saying(text: &str) -> String {
    item_saying("x", text).json.get().to_owned()
}

async fn an_item_of_a_response_is_found(store: &dyn Store) {
    put(store, response("r")).await;
    for id in ["r_in", "r_out"] {
        assert_same!(store.item(&alice(), id).await.unwrap(), Some(item(id)));
    }
    assert!(find(store, "r").await.is_none());
}

async fn an_item_of_a_conversation_is_found(store: &dyn Store) {
    store
        .put_conversation(&alice(), conversation("c"))
        .await
        .unwrap();
    store
        .append_items(&alice(), "c", vec![item("a"), item("b")])
        .await
        .unwrap();
    assert_same!(store.item(&alice(), "b").await.unwrap(), Some(item("b")));
}

async fn of_items_with_the_same_id_the_newest_is_found(store: &dyn Store) {
    store
        .put_conversation(&alice(), conversation("c"))
        .await
        .unwrap();
    put(store, with_input("r1", "first")).await;
    store
        .append_items(&alice(), "c", vec![item_saying("x", "second")])
        .await
        .unwrap();
    assert_eq!(find(store, "x").await, Some(saying("second")));
    put(store, with_input("r2", "third")).await;
    assert_eq!(find(store, "x").await, Some(saying("third")));
    put(store, with_input("r1", "fourth")).await;
    assert_eq!(find(store, "x").await, Some(saying("fourth")));
}

async fn when_the_newest_is_gone_the_next_newest_is_found(store: &dyn Store) {
    put(store, with_input("r1", "first")).await;
    put(store, with_input("r2", "second")).await;
    store.delete_response(&alice(), "r2").await.unwrap();
    assert_eq!(find(store, "x").await, Some(saying("first")));
    store.delete_response(&alice(), "r1").await.unwrap();
    assert_eq!(find(store, "x").await, None);
}

async fn an_item_that_stands_unchanged_does_not_become_newer(store: &dyn Store) {
    put(store, with_input("r1", "first")).await;
    put(store, with_input("r2", "second")).await;
    put(store, with_input("r1", "first")).await;
    assert_eq!(find(store, "x").await, Some(saying("second")));
}

async fn an_item_of_a_deleted_conversation_is_not_found(store: &dyn Store) {
    store
        .put_conversation(&alice(), conversation("c"))
        .await
        .unwrap();
    store
        .append_items(&alice(), "c", vec![item("a")])
        .await
        .unwrap();
    store.delete_conversation(&alice(), "c").await.unwrap();
    assert!(find(store, "a").await.is_none());
}

async fn a_deleted_item_of_a_conversation_is_not_found(store: &dyn Store) {
    store
        .put_conversation(&alice(), conversation("c"))
        .await
        .unwrap();
    store
        .append_items(&alice(), "c", vec![item("a")])
        .await
        .unwrap();
    store.delete_item(&alice(), "c", "a").await.unwrap();
    assert!(find(store, "a").await.is_none());
}

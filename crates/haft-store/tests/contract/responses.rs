//! A response comes back as it was written.

use haft_core::{Alongside, Store, StoreError, StoredResponse};

use crate::common::{
    alice, chain_ids, continuing, has, item, item_saying, json, put, response, unfinished,
};

kept_by_both!(
    a_response_comes_back_byte_for_byte,
    an_unknown_response_is_none,
    a_later_state_takes_the_place_of_the_earlier,
    a_later_state_may_have_fewer_items,
    a_later_state_may_have_other_input,
    the_unfinished_are_those_of_all_owners_in_the_order_of_writing,
    a_response_that_is_finished_or_deleted_is_not_unfinished,
    a_response_cannot_continue_itself,
    responses_cannot_continue_each_other,
    a_refused_response_leaves_the_earlier_state,
);

async fn a_response_comes_back_byte_for_byte(store: &dyn Store) {
    let written = StoredResponse {
        id: "r'\"\u{1f333}".to_owned(),
        previous: Some("nobody".to_owned()),
        created_at: -5,
        is_finished: false,
        resource: json("{ \"b\" : 1.50,\n \"a\":\"\\u0041\u{e4}\" }"),
        input: vec![item("a"), item_saying("b", "zwei"), item("a")],
        output: vec![item(""), item("c")],
    };
    put(store, written.clone()).await;
    assert_same!(
        store.response(&alice(), &written.id).await.unwrap(),
        Some(written)
    );
}

async fn an_unknown_response_is_none(store: &dyn Store) {
    assert!(!has(store, "r").await);
    assert!(chain_ids(store, "r").await.is_none());
    assert!(!store.delete_response(&alice(), "r").await.unwrap());
}

async fn a_later_state_takes_the_place_of_the_earlier(store: &dyn Store) {
    put(store, unfinished("r")).await;
    let later = StoredResponse {
        created_at: 2_000,
        resource: json(r#"{"status":"completed"}"#),
        output: vec![item("r_out"), item("more")],
        ..response("r")
    };
    put(store, later.clone()).await;
    assert_same!(store.response(&alice(), "r").await.unwrap(), Some(later));
}

async fn a_later_state_may_have_fewer_items(store: &dyn Store) {
    put(store, response("r")).await;
    let later = StoredResponse {
        output: Vec::new(),
        ..response("r")
    };
    put(store, later.clone()).await;
    assert_same!(store.response(&alice(), "r").await.unwrap(), Some(later));
    assert!(store.item(&alice(), "r_out").await.unwrap().is_none());
}

async fn a_later_state_may_have_other_input(store: &dyn Store) {
    put(store, response("r")).await;
    let later = StoredResponse {
        input: vec![item("r_in"), item("r_out"), item("new")],
        ..response("r")
    };
    put(store, later.clone()).await;
    assert_same!(store.response(&alice(), "r").await.unwrap(), Some(later));
}

async fn the_unfinished_are_those_of_all_owners_in_the_order_of_writing(store: &dyn Store) {
    let bob = crate::common::bob();
    put(store, unfinished("z")).await;
    store
        .put_response(&bob, unfinished("b"), Alongside::default())
        .await
        .unwrap();
    put(store, unfinished("a")).await;
    put(store, response("done")).await;
    put(store, unfinished("z")).await;
    assert_same!(
        store.unfinished().await.unwrap(),
        [
            (alice(), unfinished("z")),
            (bob, unfinished("b")),
            (alice(), unfinished("a")),
        ]
    );
}

async fn a_response_that_is_finished_or_deleted_is_not_unfinished(store: &dyn Store) {
    put(store, unfinished("finished")).await;
    put(store, unfinished("deleted")).await;
    put(store, unfinished("continued")).await;
    put(store, continuing("continued", "next")).await;
    put(store, response("finished")).await;
    for id in ["deleted", "continued"] {
        assert!(store.delete_response(&alice(), id).await.unwrap());
    }
    assert!(store.unfinished().await.unwrap().is_empty());
}

async fn a_response_cannot_continue_itself(store: &dyn Store) {
    let refused = store
        .put_response(&alice(), continuing("r", "r"), Alongside::default())
        .await;
    let text =
        "response `r` cannot continue `r`, because that one continues it: give it another id";
    assert_eq!(refused, Err(StoreError::Failed(text.to_owned())));
    assert!(!has(store, "r").await);
}

async fn responses_cannot_continue_each_other(store: &dyn Store) {
    put(store, continuing("a", "b")).await;
    put(store, continuing("b", "c")).await;
    let refused = store
        .put_response(&alice(), continuing("c", "a"), Alongside::default())
        .await;
    assert!(matches!(refused, Err(StoreError::Failed(_))));
    put(store, response("a")).await;
    assert_eq!(chain_ids(store, "c").await.unwrap(), ["a", "b", "c"]);
}

async fn a_refused_response_leaves_the_earlier_state(store: &dyn Store) {
    put(store, response("a")).await;
    put(store, continuing("a", "b")).await;
    let refused = store
        .put_response(&alice(), continuing("b", "a"), Alongside::default())
        .await;
    assert!(refused.is_err());
    assert_same!(
        store.response(&alice(), "a").await.unwrap(),
        Some(response("a"))
    );
}

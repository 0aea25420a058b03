//! An id of another owner is an unknown id, for every method.

use haft_core::{Alongside, PageQuery, Retention, Store};

use crate::common::{
    alice, appended_to, bob, continuing, conversation, event, item, item_saying, json, put,
    response,
};

kept_by_both!(
    responses_of_another_owner_are_unknown,
    events_of_another_owner_are_unknown,
    items_of_another_owner_are_unknown,
    conversations_of_another_owner_are_unknown,
    two_owners_may_use_the_same_ids,
    a_chain_never_leads_to_another_owner,
    a_continuation_by_another_owner_keeps_nothing,
    a_response_is_not_added_to_the_conversation_of_another_owner,
);

async fn responses_of_another_owner_are_unknown(store: &dyn Store) {
    put(store, response("r")).await;
    assert!(store.response(&bob(), "r").await.unwrap().is_none());
    assert!(store.chain(&bob(), "r").await.unwrap().is_none());
    assert!(!store.delete_response(&bob(), "r").await.unwrap());
    assert_same!(
        store.response(&alice(), "r").await.unwrap(),
        Some(response("r"))
    );
}

async fn events_of_another_owner_are_unknown(store: &dyn Store) {
    put(store, response("r")).await;
    store
        .append_events(&alice(), "r", vec![event(0)])
        .await
        .unwrap();
    store
        .append_events(&bob(), "r", vec![event(1)])
        .await
        .unwrap();
    let events = store.events(&bob(), "r", None, 10).await.unwrap();
    assert!(events.is_empty());
    let events = store.events(&alice(), "r", None, 10).await.unwrap();
    assert_same!(events, [event(0)]);
}

async fn items_of_another_owner_are_unknown(store: &dyn Store) {
    put(store, response("r")).await;
    store
        .put_conversation(&alice(), conversation("c"))
        .await
        .unwrap();
    store
        .append_items(&alice(), "c", vec![item("x")])
        .await
        .unwrap();
    for id in ["r_in", "r_out", "x"] {
        assert!(store.item(&bob(), id).await.unwrap().is_none());
        assert!(store.item(&alice(), id).await.unwrap().is_some());
    }
}

async fn conversations_of_another_owner_are_unknown(store: &dyn Store) {
    store
        .put_conversation(&alice(), conversation("c"))
        .await
        .unwrap();
    store
        .append_items(&alice(), "c", vec![item("x")])
        .await
        .unwrap();
    assert!(store.conversation(&bob(), "c").await.unwrap().is_none());
    let items = store.conversation_items(&bob(), "c").await.unwrap();
    assert!(items.is_none());
    let query = PageQuery {
        after: Some("x".to_owned()),
        limit: 10,
        is_descending: false,
    };
    let page = store.conversation_page(&bob(), "c", query).await.unwrap();
    assert!(page.is_none());
    let more = vec![item("y")];
    assert!(!store.append_items(&bob(), "c", more).await.unwrap());
    assert!(!store.delete_item(&bob(), "c", "x").await.unwrap());
    assert!(!store.delete_conversation(&bob(), "c").await.unwrap());
    let items = store.conversation_items(&alice(), "c").await.unwrap();
    assert_same!(items, Some([item("x")]));
}

async fn two_owners_may_use_the_same_ids(store: &dyn Store) {
    let mut hers = response("r");
    hers.input = vec![item_saying("x", "hers")];
    let mut his = response("r");
    his.input = vec![item_saying("x", "his")];
    put(store, hers.clone()).await;
    store
        .put_response(&bob(), his.clone(), Alongside::default())
        .await
        .unwrap();
    let mut record = conversation("c");
    record.metadata = json("{}");
    store
        .put_conversation(&alice(), conversation("c"))
        .await
        .unwrap();
    store
        .put_conversation(&bob(), record.clone())
        .await
        .unwrap();
    assert_same!(store.response(&alice(), "r").await.unwrap(), Some(hers));
    assert_same!(store.response(&bob(), "r").await.unwrap(), Some(&his));
    let hers = store.item(&alice(), "x").await.unwrap();
    assert_same!(hers, Some(item_saying("x", "hers")));
    assert!(store.delete_response(&alice(), "r").await.unwrap());
    assert!(store.delete_conversation(&alice(), "c").await.unwrap());
    assert_same!(store.response(&bob(), "r").await.unwrap(), Some(his));
    assert_same!(store.conversation(&bob(), "c").await.unwrap(), Some(record));
}

async fn a_chain_never_leads_to_another_owner(store: &dyn Store) {
    put(store, response("a")).await;
    store
        .put_response(&bob(), continuing("a", "b"), Alongside::default())
        .await
        .unwrap();
    let chain = store.chain(&bob(), "b").await.unwrap().unwrap();
    assert_same!(chain, [continuing("a", "b")]);
}

async fn a_continuation_by_another_owner_keeps_nothing(store: &dyn Store) {
    put(store, response("a")).await;
    store
        .put_response(&bob(), continuing("a", "b"), Alongside::default())
        .await
        .unwrap();
    store.delete_response(&alice(), "a").await.unwrap();
    put(store, continuing("a", "c")).await;
    let chain = store.chain(&alice(), "c").await.unwrap().unwrap();
    assert_same!(chain, [continuing("a", "c")]);
}

async fn a_response_is_not_added_to_the_conversation_of_another_owner(store: &dyn Store) {
    store
        .put_conversation(&alice(), conversation("c"))
        .await
        .unwrap();
    let is_added = store
        .put_response(&bob(), response("r"), appended_to("c"))
        .await
        .unwrap();
    assert!(!is_added);
    let items = store.conversation_items(&alice(), "c").await.unwrap();
    assert!(items.unwrap().is_empty());
    // Cleaning is for all owners.
    let retention = Retention {
        max_bytes: Some(0),
        ..Retention::default()
    };
    let cleaned = store.clean(retention, 0, 10).await.unwrap();
    assert_eq!(cleaned.responses, 1);
}

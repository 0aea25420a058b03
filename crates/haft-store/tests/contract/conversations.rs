//! Conversations keep their items in order.

use haft_core::{Store, StoreError, StoredConversation};

use crate::common::{
    alice, appended_to, continuing, conversation, has, ids, item, item_saying, json, put, response,
};

kept_by_both!(
    a_conversation_comes_back_byte_for_byte,
    an_unknown_conversation_is_none,
    a_later_record_keeps_the_items,
    items_are_added_at_the_end,
    items_for_an_unknown_conversation_are_not_kept,
    a_response_is_added_input_first,
    a_response_for_a_lost_conversation_is_written_all_the_same,
    a_refused_response_adds_nothing_to_the_conversation,
    a_deleted_conversation_is_gone_and_its_responses_stay,
    a_conversation_made_anew_is_empty,
    a_deleted_item_is_gone_wherever_it_stands,
    deleting_an_item_keeps_it_in_responses_and_other_conversations,
);

async fn begin(store: &dyn Store, id: &str) {
    store
        .put_conversation(&alice(), conversation(id))
        .await
        .unwrap();
}

async fn append(store: &dyn Store, id: &str, items: &[&str]) -> bool {
    let items = items.iter().copied().map(item).collect();
    store.append_items(&alice(), id, items).await.unwrap()
}

async fn listed(store: &dyn Store, id: &str) -> Option<Vec<String>> {
    let items = store.conversation_items(&alice(), id).await.unwrap()?;
    Some(ids(&items).into_iter().map(str::to_owned).collect())
}

async fn a_conversation_comes_back_byte_for_byte(store: &dyn Store) {
    let written = StoredConversation {
        id: "c".to_owned(),
        created_at: 77,
        metadata: json("{ \"a\":  \"\u{e4}\" }"),
    };
    store
        .put_conversation(&alice(), written.clone())
        .await
        .unwrap();
    assert_same!(
        store.conversation(&alice(), "c").await.unwrap(),
        Some(written)
    );
    assert!(listed(store, "c").await.unwrap().is_empty());
}

async fn an_unknown_conversation_is_none(store: &dyn Store) {
    assert!(store.conversation(&alice(), "c").await.unwrap().is_none());
    assert!(listed(store, "c").await.is_none());
    assert!(!store.delete_conversation(&alice(), "c").await.unwrap());
    assert!(!store.delete_item(&alice(), "c", "a").await.unwrap());
}

async fn a_later_record_keeps_the_items(store: &dyn Store) {
    begin(store, "c").await;
    append(store, "c", &["a"]).await;
    let later = StoredConversation {
        metadata: json(r#"{"topic":"stones"}"#),
        created_at: 2_000,
        ..conversation("c")
    };
    store
        .put_conversation(&alice(), later.clone())
        .await
        .unwrap();
    assert_same!(
        store.conversation(&alice(), "c").await.unwrap(),
        Some(later)
    );
    assert_eq!(listed(store, "c").await.unwrap(), ["a"]);
}

async fn items_are_added_at_the_end(store: &dyn Store) {
    begin(store, "c").await;
    assert!(append(store, "c", &["z", "a"]).await);
    assert!(append(store, "c", &[]).await);
    assert!(append(store, "c", &["m"]).await);
    let items = store.conversation_items(&alice(), "c").await.unwrap();
    assert_same!(items, Some([item("z"), item("a"), item("m")]));
}

async fn items_for_an_unknown_conversation_are_not_kept(store: &dyn Store) {
    assert!(!append(store, "c", &["a"]).await);
    begin(store, "c").await;
    assert!(listed(store, "c").await.unwrap().is_empty());
}

async fn a_response_is_added_input_first(store: &dyn Store) {
    begin(store, "c").await;
    append(store, "c", &["a"]).await;
    let is_added = store
        .put_response(&alice(), response("r"), appended_to("c"))
        .await
        .unwrap();
    assert!(is_added);
    assert_eq!(listed(store, "c").await.unwrap(), ["a", "r_in", "r_out"]);
    assert!(has(store, "r").await);
}

async fn a_response_for_a_lost_conversation_is_written_all_the_same(store: &dyn Store) {
    let is_added = store
        .put_response(&alice(), response("r"), appended_to("c"))
        .await
        .unwrap();
    assert!(!is_added);
    assert_same!(
        store.response(&alice(), "r").await.unwrap(),
        Some(response("r"))
    );
}

async fn a_refused_response_adds_nothing_to_the_conversation(store: &dyn Store) {
    begin(store, "c").await;
    let refused = store
        .put_response(&alice(), continuing("r", "r"), appended_to("c"))
        .await;
    assert!(matches!(refused, Err(StoreError::Failed(_))));
    assert!(listed(store, "c").await.unwrap().is_empty());
}

async fn a_deleted_conversation_is_gone_and_its_responses_stay(store: &dyn Store) {
    begin(store, "c").await;
    store
        .put_response(&alice(), response("r"), appended_to("c"))
        .await
        .unwrap();
    assert!(store.delete_conversation(&alice(), "c").await.unwrap());
    assert!(store.conversation(&alice(), "c").await.unwrap().is_none());
    assert!(listed(store, "c").await.is_none());
    assert_same!(
        store.response(&alice(), "r").await.unwrap(),
        Some(response("r"))
    );
}

async fn a_conversation_made_anew_is_empty(store: &dyn Store) {
    begin(store, "c").await;
    append(store, "c", &["a"]).await;
    store.delete_conversation(&alice(), "c").await.unwrap();
    begin(store, "c").await;
    assert!(listed(store, "c").await.unwrap().is_empty());
}

async fn a_deleted_item_is_gone_wherever_it_stands(store: &dyn Store) {
    begin(store, "c").await;
    append(store, "c", &["a", "b", "a", "c"]).await;
    assert!(store.delete_item(&alice(), "c", "a").await.unwrap());
    assert!(!store.delete_item(&alice(), "c", "a").await.unwrap());
    assert_eq!(listed(store, "c").await.unwrap(), ["b", "c"]);
}

async fn deleting_an_item_keeps_it_in_responses_and_other_conversations(store: &dyn Store) {
    begin(store, "c").await;
    begin(store, "d").await;
    put(store, response("r")).await;
    append(store, "c", &["r_in"]).await;
    let other = vec![item_saying("r_in", "otherwise")];
    store.append_items(&alice(), "d", other).await.unwrap();
    assert!(store.delete_item(&alice(), "c", "r_in").await.unwrap());
    assert_eq!(listed(store, "d").await.unwrap(), ["r_in"]);
    assert_same!(
        store.response(&alice(), "r").await.unwrap(),
        Some(response("r"))
    );
}

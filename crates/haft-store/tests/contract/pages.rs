//! A long conversation can be read in pieces.

use haft_core::{PageQuery, Store, StoreError};

use crate::common::{alice, conversation, ids, item, put, response};

kept_by_both!(
    pages_follow_each_other_oldest_first,
    pages_follow_each_other_newest_first,
    the_last_page_says_that_there_are_no_more,
    a_page_of_nothing_says_whether_there_is_something,
    a_page_behind_an_unknown_item_is_an_error,
    a_page_behind_an_item_of_another_conversation_is_an_error,
    a_page_of_an_unknown_conversation_is_none,
    paging_ends_although_items_occur_twice,
);

fn query(after: Option<&str>, limit: usize, is_descending: bool) -> PageQuery {
    PageQuery {
        after: after.map(str::to_owned),
        limit,
        is_descending,
    }
}

async fn fill(store: &dyn Store, items: &[&str]) {
    store
        .put_conversation(&alice(), conversation("c"))
        .await
        .unwrap();
    // Something of others in between, which no page shows.
    put(store, response("r")).await;
    for id in items {
        store
            .append_items(&alice(), "c", vec![item(id)])
            .await
            .unwrap();
        let _ = store.append_items(&alice(), "d", vec![item(id)]).await;
    }
}

/// The ids of a page, and whether there are more.
async fn page(store: &dyn Store, query: PageQuery) -> (Vec<String>, bool) {
    let page = store
        .conversation_page(&alice(), "c", query)
        .await
        .unwrap()
        .unwrap();
    let ids = ids(&page.items).into_iter().map(str::to_owned).collect();
    (ids, page.has_more)
}

async fn all_pages(store: &dyn Store, limit: usize, is_descending: bool) -> Vec<String> {
    let mut all = Vec::new();
    let mut after = None;
    // More than any of these tests can need.
    for _ in 0..20 {
        let query = query(after.as_deref(), limit, is_descending);
        let (ids, has_more) = page(store, query).await;
        assert!(ids.len() <= limit);
        after = ids.last().cloned();
        all.extend(ids);
        if !has_more {
            return all;
        }
    }
    panic!("paging does not end: {all:?}");
}

async fn pages_follow_each_other_oldest_first(store: &dyn Store) {
    fill(store, &["e", "d", "c", "b", "a"]).await;
    for limit in 1..7 {
        let all = all_pages(store, limit, false).await;
        assert_eq!(all, ["e", "d", "c", "b", "a"]);
    }
}

async fn pages_follow_each_other_newest_first(store: &dyn Store) {
    fill(store, &["e", "d", "c", "b", "a"]).await;
    for limit in 1..7 {
        let all = all_pages(store, limit, true).await;
        assert_eq!(all, ["a", "b", "c", "d", "e"]);
    }
}

async fn the_last_page_says_that_there_are_no_more(store: &dyn Store) {
    fill(store, &["a", "b"]).await;
    let (_, has_more) = page(store, query(None, 1, false)).await;
    assert!(has_more);
    let (_, has_more) = page(store, query(None, 2, false)).await;
    assert!(!has_more);
    let (items, has_more) = page(store, query(Some("b"), 2, false)).await;
    assert!(items.is_empty() && !has_more);
    let (items, has_more) = page(store, query(Some("a"), 2, true)).await;
    assert!(items.is_empty() && !has_more);
    let (items, has_more) = page(store, query(None, usize::MAX, true)).await;
    assert!(items.len() == 2 && !has_more);
}

async fn a_page_of_nothing_says_whether_there_is_something(store: &dyn Store) {
    fill(store, &[]).await;
    assert_eq!(page(store, query(None, 0, false)).await, (vec![], false));
    assert_eq!(page(store, query(None, 5, true)).await, (vec![], false));
    store
        .append_items(&alice(), "c", vec![item("a")])
        .await
        .unwrap();
    assert_eq!(page(store, query(None, 0, false)).await, (vec![], true));
}

async fn a_page_behind_an_unknown_item_is_an_error(store: &dyn Store) {
    fill(store, &["a"]).await;
    for is_descending in [false, true] {
        let refused = store
            .conversation_page(&alice(), "c", query(Some("x"), 5, is_descending))
            .await;
        let id = "x".to_owned();
        assert_eq!(refused.unwrap_err(), StoreError::UnknownItem { id });
    }
}

async fn a_page_behind_an_item_of_another_conversation_is_an_error(store: &dyn Store) {
    store
        .put_conversation(&alice(), conversation("d"))
        .await
        .unwrap();
    fill(store, &["a"]).await;
    store
        .append_items(&alice(), "d", vec![item("b")])
        .await
        .unwrap();
    for id in ["b", "r_in"] {
        let refused = store
            .conversation_page(&alice(), "c", query(Some(id), 5, false))
            .await;
        let id = id.to_owned();
        assert_eq!(refused.unwrap_err(), StoreError::UnknownItem { id });
    }
}

async fn a_page_of_an_unknown_conversation_is_none(store: &dyn Store) {
    let page = store
        .conversation_page(&alice(), "c", query(Some("x"), 5, false))
        .await
        .unwrap();
    assert!(page.is_none());
}

async fn paging_ends_although_items_occur_twice(store: &dyn Store) {
    fill(store, &["a", "b", "a", "c", "b", "d"]).await;
    for limit in 1..7 {
        let ascending = all_pages(store, limit, false).await;
        assert_eq!(ascending.last().unwrap(), "d");
        let descending = all_pages(store, limit, true).await;
        assert_eq!(descending.last().unwrap(), "a");
    }
}

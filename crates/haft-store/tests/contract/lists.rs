//! The responses of an owner, or of all, can be listed in pieces.

use haft_core::{Alongside, ListedResponse, Owner, PageQuery, Store, StoreError, StoredResponse};

use crate::common::{alice, bob, continuing, made_at, put, response, unfinished};

kept_by_both!(
    a_list_is_ordered_by_time_and_then_by_id,
    a_list_shows_responses_without_their_items,
    pages_of_a_list_follow_each_other,
    a_list_of_nothing_says_whether_there_is_something,
    deleted_responses_are_not_listed,
    a_later_state_is_listed_once,
    a_list_behind_an_unknown_or_deleted_response_is_an_error,
    a_list_behind_a_response_of_another_owner_is_an_error,
    the_list_of_all_owners_has_everything_in_one_order,
    paging_through_all_owners_ends_although_they_have_the_same_ids,
    a_store_that_works_says_so,
);

fn query(after: Option<&str>, limit: usize, is_descending: bool) -> PageQuery {
    PageQuery {
        after: after.map(str::to_owned),
        limit,
        is_descending,
    }
}

async fn put_for(store: &dyn Store, owner: &Owner, response: StoredResponse) {
    let write = store.put_response(owner, response, Alongside::default());
    assert!(write.await.unwrap());
}

/// The ids of a page, and whether there are more.
async fn page(store: &dyn Store, owner: Option<&Owner>, query: PageQuery) -> (Vec<String>, bool) {
    let page = store.responses(owner, query).await.unwrap();
    let ids = page.responses.into_iter().map(|response| response.id);
    (ids.collect(), page.has_more)
}

/// The ids of all pages.
async fn all(
    store: &dyn Store,
    owner: Option<&Owner>,
    limit: usize,
    is_descending: bool,
) -> Vec<String> {
    let mut all = Vec::new();
    let mut after = None;
    // More than any of these tests can need.
    for _ in 0..30 {
        let query = query(after.as_deref(), limit, is_descending);
        let (ids, has_more) = page(store, owner, query).await;
        assert!(ids.len() <= limit);
        after = ids.last().cloned();
        all.extend(ids);
        if !has_more {
            return all;
        }
    }
    panic!("paging does not end: {all:?}");
}

async fn fill(store: &dyn Store) {
    for (time, id) in [(30, "a"), (10, "z"), (10, "b"), (-5, "m"), (20, "\u{e4}")] {
        put(store, made_at(time, response(id))).await;
    }
    for (time, id) in [(25, "of bob"), (10, "c")] {
        put_for(store, &bob(), made_at(time, response(id))).await;
    }
}

async fn a_list_is_ordered_by_time_and_then_by_id(store: &dyn Store) {
    fill(store).await;
    let alice = alice();
    let (ascending, has_more) = page(store, Some(&alice), query(None, 10, false)).await;
    assert_eq!(ascending, ["m", "b", "z", "\u{e4}", "a"]);
    assert!(!has_more);
    let (descending, _) = page(store, Some(&alice), query(None, 10, true)).await;
    assert_eq!(descending, ["a", "\u{e4}", "z", "b", "m"]);
}

async fn a_list_shows_responses_without_their_items(store: &dyn Store) {
    put(store, made_at(5, unfinished("r"))).await;
    let listed = store
        .responses(Some(&alice()), query(None, 10, false))
        .await
        .unwrap();
    assert_same!(
        listed.responses,
        [ListedResponse {
            owner: alice(),
            id: "r".to_owned(),
            created_at: 5,
            is_finished: false,
            resource: response("r").resource,
        }]
    );
}

async fn pages_of_a_list_follow_each_other(store: &dyn Store) {
    fill(store).await;
    let alice = alice();
    for limit in 1..7 {
        assert_eq!(
            all(store, Some(&alice), limit, false).await,
            ["m", "b", "z", "\u{e4}", "a"]
        );
        assert_eq!(
            all(store, Some(&alice), limit, true).await,
            ["a", "\u{e4}", "z", "b", "m"]
        );
    }
    let whole = page(store, Some(&alice), query(Some("z"), usize::MAX, true)).await;
    assert_eq!(whole, (vec!["b".to_owned(), "m".to_owned()], false));
}

async fn a_list_of_nothing_says_whether_there_is_something(store: &dyn Store) {
    let alice = alice();
    for owner in [None, Some(&alice)] {
        assert_eq!(
            page(store, owner, query(None, 0, false)).await,
            (vec![], false)
        );
        assert_eq!(
            page(store, owner, query(None, 5, true)).await,
            (vec![], false)
        );
    }
    fill(store).await;
    for owner in [None, Some(&alice)] {
        assert_eq!(
            page(store, owner, query(None, 0, true)).await,
            (vec![], true)
        );
    }
}

async fn deleted_responses_are_not_listed(store: &dyn Store) {
    put(store, response("a")).await;
    put(store, continuing("a", "b")).await;
    put(store, response("c")).await;
    for id in ["a", "c"] {
        assert!(store.delete_response(&alice(), id).await.unwrap());
    }
    let alice = alice();
    for owner in [None, Some(&alice)] {
        assert_eq!(all(store, owner, 10, false).await, ["b"]);
    }
}

async fn a_later_state_is_listed_once(store: &dyn Store) {
    put(store, made_at(1, unfinished("r"))).await;
    put(store, made_at(2, response("s"))).await;
    put(store, made_at(3, response("r"))).await;
    let alice = alice();
    assert_eq!(all(store, Some(&alice), 10, false).await, ["s", "r"]);
    assert_eq!(all(store, None, 1, true).await, ["r", "s"]);
}

async fn a_list_behind_an_unknown_or_deleted_response_is_an_error(store: &dyn Store) {
    put(store, response("a")).await;
    put(store, continuing("a", "b")).await;
    assert!(store.delete_response(&alice(), "a").await.unwrap());
    let alice = alice();
    for owner in [None, Some(&alice)] {
        for id in ["a", "x"] {
            for is_descending in [false, true] {
                let refused = store
                    .responses(owner, query(Some(id), 5, is_descending))
                    .await;
                let id = id.to_owned();
                assert_eq!(refused.unwrap_err(), StoreError::UnknownItem { id });
            }
        }
    }
}

async fn a_list_behind_a_response_of_another_owner_is_an_error(store: &dyn Store) {
    fill(store).await;
    let refused = store
        .responses(Some(&alice()), query(Some("c"), 5, false))
        .await;
    let id = "c".to_owned();
    assert_eq!(refused.unwrap_err(), StoreError::UnknownItem { id });
}

async fn the_list_of_all_owners_has_everything_in_one_order(store: &dyn Store) {
    fill(store).await;
    let mut expected = ["m", "b", "c", "z", "\u{e4}", "of bob", "a"];
    for limit in 1..9 {
        assert_eq!(all(store, None, limit, false).await, expected);
    }
    expected.reverse();
    for limit in 1..9 {
        assert_eq!(all(store, None, limit, true).await, expected);
    }
    let listed = store.responses(None, query(None, 3, true)).await.unwrap();
    let owners: Vec<_> = listed
        .responses
        .iter()
        .map(|response| response.owner.as_str())
        .collect();
    assert_eq!(owners, ["alice", "bob", "alice"]);
    assert!(listed.has_more);
}

async fn paging_through_all_owners_ends_although_they_have_the_same_ids(store: &dyn Store) {
    for owner in [alice(), bob(), Owner::new("carol")] {
        for (time, id) in [(1, "a"), (2, "b"), (3, "c")] {
            put_for(store, &owner, made_at(time, response(id))).await;
        }
    }
    put_for(store, &bob(), made_at(9, response("a"))).await;
    for limit in 1..11 {
        let ascending = all(store, None, limit, false).await;
        assert_eq!(ascending.last().unwrap(), "a");
        let descending = all(store, None, limit, true).await;
        assert_eq!(descending.last().unwrap(), "a");
    }
    let (ids, _) = page(store, None, query(None, 20, false)).await;
    assert_eq!(ids, ["a", "a", "b", "b", "b", "c", "c", "c", "a"]);
}

async fn a_store_that_works_says_so(store: &dyn Store) {
    for _ in 0..3 {
        store.check().await.unwrap();
    }
    // And nothing of that is seen.
    let (ids, has_more) = page(store, None, query(None, 10, false)).await;
    assert!(ids.is_empty() && !has_more);
}

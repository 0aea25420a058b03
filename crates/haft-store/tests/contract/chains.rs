//! A chain is a response and everything that it continues.

use haft_core::{Alongside, Store, StoredResponse};

use crate::common::{alice, chain_ids, continuing, item, put, response, tombstone, unfinished};

kept_by_both!(
    a_chain_is_whole_and_the_oldest_comes_first,
    a_chain_may_branch,
    a_chain_begins_behind_a_response_that_was_never_written,
    a_chain_may_continue_an_unfinished_response,
    a_chain_of_a_thousand_is_whole,
    a_deleted_response_is_part_of_the_chains_that_continue_it,
    a_deleted_response_has_no_chain_of_its_own,
);

async fn a_chain_is_whole_and_the_oldest_comes_first(store: &dyn Store) {
    // Written in another order than they continue each other.
    let written = [response("a"), continuing("a", "z"), continuing("z", "b")];
    for response in written.iter().rev() {
        put(store, response.clone()).await;
    }
    assert_same!(store.chain(&alice(), "b").await.unwrap().unwrap(), written);
}

async fn a_chain_may_branch(store: &dyn Store) {
    put(store, response("root")).await;
    put(store, continuing("root", "left")).await;
    put(store, continuing("root", "right")).await;
    put(store, continuing("left", "leaf")).await;
    assert_eq!(
        chain_ids(store, "leaf").await.unwrap(),
        ["root", "left", "leaf"]
    );
    assert_eq!(chain_ids(store, "right").await.unwrap(), ["root", "right"]);
}

async fn a_chain_begins_behind_a_response_that_was_never_written(store: &dyn Store) {
    put(store, continuing("lost", "a")).await;
    put(store, continuing("a", "b")).await;
    let chain = store.chain(&alice(), "b").await.unwrap().unwrap();
    assert_same!(chain, [continuing("lost", "a"), continuing("a", "b")]);
}

async fn a_chain_may_continue_an_unfinished_response(store: &dyn Store) {
    put(store, unfinished("a")).await;
    put(store, continuing("a", "b")).await;
    assert_eq!(chain_ids(store, "b").await.unwrap(), ["a", "b"]);
}

async fn a_chain_of_a_thousand_is_whole(store: &dyn Store) {
    let mut written = Vec::new();
    for number in 0..1_000_u32 {
        let id = format!("r{number}");
        let previous = number.checked_sub(1).map(|number| format!("r{number}"));
        let response = StoredResponse {
            previous,
            input: vec![item(&format!("{id}_a")), item("same")],
            output: vec![item(&format!("{id}_b")), item(&format!("{id}_c"))],
            ..response(&id)
        };
        written.push(response);
    }
    // All at once: they share commits.
    let writes: Vec<_> = written
        .iter()
        .map(|response| store.put_response(&alice(), response.clone(), Alongside::default()))
        .collect();
    crate::concurrency::all(writes).await;
    assert_same!(
        store.chain(&alice(), "r999").await.unwrap().unwrap(),
        written
    );
}

async fn a_deleted_response_is_part_of_the_chains_that_continue_it(store: &dyn Store) {
    put(store, response("a")).await;
    put(store, continuing("a", "b")).await;
    put(store, continuing("b", "c")).await;
    assert!(store.delete_response(&alice(), "b").await.unwrap());
    assert_same!(
        store.chain(&alice(), "c").await.unwrap().unwrap(),
        [
            response("a"),
            tombstone(continuing("a", "b")),
            continuing("b", "c"),
        ]
    );
}

async fn a_deleted_response_has_no_chain_of_its_own(store: &dyn Store) {
    put(store, response("a")).await;
    put(store, continuing("a", "b")).await;
    store.delete_response(&alice(), "a").await.unwrap();
    assert!(chain_ids(store, "a").await.is_none());
}

//! Many at a time.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use haft_core::{BoxFuture, Store, StoreError};
use haft_store::MemoryStore;

use crate::common::{alice, appended_to, chain_ids, continuing, item, response, sqlite};

/// Waits for all of these at a time; each must be acknowledged with `true`.
pub(crate) async fn all(mut writes: Vec<BoxFuture<'_, Result<bool, StoreError>>>) {
    std::future::poll_fn(|context| {
        writes.retain_mut(|write| match Pin::new(write).poll(context) {
            Poll::Ready(outcome) => {
                assert_eq!(outcome, Ok(true));
                false
            }
            Poll::Pending => true,
        });
        if writes.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_many_writers_were_acknowledged_is_readable_at_once_in_sqlite() {
    let (_directory, store) = sqlite();
    many_writers(Arc::new(store)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_many_writers_were_acknowledged_is_readable_at_once_in_memory() {
    many_writers(Arc::new(MemoryStore::new())).await;
}

async fn many_writers(store: Arc<dyn Store>) {
    store
        .put_conversation(&alice(), crate::common::conversation("c"))
        .await
        .unwrap();
    let writers: Vec<_> = (0..64)
        .map(|writer| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for turn in 0..8 {
                    let id = format!("w{writer}_{turn}");
                    let next = match turn {
                        0 => response(&id),
                        turn => continuing(&format!("w{writer}_{}", turn - 1), &id),
                    };
                    assert!(
                        store
                            .put_response(&alice(), next, appended_to("c"))
                            .await
                            .unwrap()
                    );
                    let chain = chain_ids(&*store, &id).await.unwrap();
                    assert_eq!(chain.len(), turn + 1);
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let items = store
        .conversation_items(&alice(), "c")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(items.len(), 64 * 8 * 2);
    // Each response came to the conversation in one piece.
    for pair in items.chunks(2) {
        let id = pair[0].id.trim_end_matches("_in");
        assert_same!(
            pair,
            [item(&format!("{id}_in")), item(&format!("{id}_out"))]
        );
    }
}

//! How the run of a response went, if that was noted down.

use haft_core::{Alongside, Store};

use crate::common::{alice, bob, continuing, json, put, response, unfinished};

kept_by_both!(
    a_trace_comes_back_byte_for_byte,
    a_trace_stays_until_another_takes_its_place,
    a_deleted_response_takes_its_trace_along,
    a_trace_of_another_owner_is_unknown,
);

fn traced(text: &str) -> Alongside {
    Alongside {
        trace: Some(json(text)),
        ..Alongside::default()
    }
}

async fn trace(store: &dyn Store) -> Option<String> {
    let found = store.trace(&alice(), "r").await.unwrap();
    found.map(|json| json.get().to_owned())
}

async fn a_trace_comes_back_byte_for_byte(store: &dyn Store) {
    assert_eq!(trace(store).await, None);
    put(store, response("r")).await;
    assert_eq!(trace(store).await, None);
    let text = "{ \"turns\" : [ 1.50 ] }";
    let write = store.put_response(&alice(), response("r"), traced(text));
    assert_eq!(write.await, Ok(true));
    assert_eq!(trace(store).await.as_deref(), Some(text));
}

async fn a_trace_stays_until_another_takes_its_place(store: &dyn Store) {
    let write = store.put_response(&alice(), unfinished("r"), traced("1"));
    assert_eq!(write.await, Ok(true));
    put(store, response("r")).await;
    assert_eq!(trace(store).await.as_deref(), Some("1"));
    let write = store.put_response(&alice(), response("r"), traced("2"));
    assert_eq!(write.await, Ok(true));
    assert_eq!(trace(store).await.as_deref(), Some("2"));
}

async fn a_deleted_response_takes_its_trace_along(store: &dyn Store) {
    for is_continued in [false, true] {
        let write = store.put_response(&alice(), response("r"), traced("1"));
        assert_eq!(write.await, Ok(true));
        if is_continued {
            put(store, continuing("r", "next")).await;
        }
        assert!(store.delete_response(&alice(), "r").await.unwrap());
        assert_eq!(trace(store).await, None);
        put(store, response("r")).await;
        assert_eq!(trace(store).await, None);
    }
}

async fn a_trace_of_another_owner_is_unknown(store: &dyn Store) {
    let write = store.put_response(&alice(), response("r"), traced("1"));
    assert_eq!(write.await, Ok(true));
    assert!(store.trace(&bob(), "r").await.unwrap().is_none());
}

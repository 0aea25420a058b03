//! How far the run of an unfinished response has come, together with what was told of it.

use haft_core::{Alongside, Store, StoreError};

use crate::common::{
    alice, appended_to, bob, continuing, conversation, event, item, json, put, response, unfinished,
};

kept_by_both!(
    a_checkpoint_comes_back_byte_for_byte,
    a_checkpoint_takes_the_place_of_the_earlier,
    a_checkpoint_brings_its_events,
    a_checkpoint_can_come_with_its_response,
    a_later_state_without_a_checkpoint_keeps_it,
    a_finished_response_has_no_checkpoint,
    a_checkpoint_for_a_response_that_is_unknown_finished_or_deleted_is_not_written,
    a_checkpoint_whose_events_are_refused_is_not_written,
    a_response_whose_events_are_refused_is_not_written,
    events_come_with_their_response,
    events_are_written_although_the_conversation_is_gone,
    a_deleted_response_takes_its_checkpoint_along,
    a_checkpoint_of_another_owner_is_unknown,
);

fn with_checkpoint(text: &str) -> Alongside {
    Alongside {
        checkpoint: Some(json(text)),
        ..Alongside::default()
    }
}

fn with_events(numbers: &[u64]) -> Alongside {
    Alongside {
        events: numbers.iter().copied().map(event).collect(),
        ..Alongside::default()
    }
}

async fn note(store: &dyn Store, text: &str, numbers: &[u64]) -> Result<bool, StoreError> {
    let events = numbers.iter().copied().map(event).collect();
    store
        .put_checkpoint(&alice(), "r", json(text), events)
        .await
}

async fn checkpoint(store: &dyn Store) -> Option<String> {
    let found = store.checkpoint(&alice(), "r").await.unwrap();
    found.map(|json| json.get().to_owned())
}

async fn numbers(store: &dyn Store) -> Vec<u64> {
    let events = store.events(&alice(), "r", None, 100).await.unwrap();
    events.iter().map(|event| event.sequence_number).collect()
}

async fn a_checkpoint_comes_back_byte_for_byte(store: &dyn Store) {
    put(store, unfinished("r")).await;
    assert_eq!(checkpoint(store).await, None);
    let text = "{ \"turn\" : 1.50,\n \"a\":\"\\u0041\u{e4}\" }";
    assert_eq!(note(store, text, &[]).await, Ok(true));
    assert_eq!(checkpoint(store).await.as_deref(), Some(text));
    // The response is as it was.
    let read = store.response(&alice(), "r").await.unwrap();
    assert_same!(read, Some(unfinished("r")));
}

async fn a_checkpoint_takes_the_place_of_the_earlier(store: &dyn Store) {
    put(store, unfinished("r")).await;
    for text in ["1", "[2,2]", "3"] {
        assert_eq!(note(store, text, &[]).await, Ok(true));
        assert_eq!(checkpoint(store).await.as_deref(), Some(text));
    }
}

async fn a_checkpoint_brings_its_events(store: &dyn Store) {
    put(store, unfinished("r")).await;
    assert_eq!(note(store, "1", &[0, 1]).await, Ok(true));
    assert_eq!(note(store, "2", &[2]).await, Ok(true));
    assert_eq!(numbers(store).await, [0, 1, 2]);
    // The same once more, as after an answer that got lost.
    assert_eq!(note(store, "2", &[2]).await, Ok(true));
    assert_eq!(numbers(store).await, [0, 1, 2]);
}

async fn a_checkpoint_can_come_with_its_response(store: &dyn Store) {
    let write = store.put_response(&alice(), unfinished("r"), with_checkpoint("1"));
    assert_eq!(write.await, Ok(true));
    assert_eq!(checkpoint(store).await.as_deref(), Some("1"));
    let write = store.put_response(&alice(), unfinished("r"), with_checkpoint("2"));
    assert_eq!(write.await, Ok(true));
    assert_eq!(checkpoint(store).await.as_deref(), Some("2"));
}

async fn a_later_state_without_a_checkpoint_keeps_it(store: &dyn Store) {
    let write = store.put_response(&alice(), unfinished("r"), with_checkpoint("1"));
    assert_eq!(write.await, Ok(true));
    put(store, unfinished("r")).await;
    assert_eq!(checkpoint(store).await.as_deref(), Some("1"));
}

async fn a_finished_response_has_no_checkpoint(store: &dyn Store) {
    let write = store.put_response(&alice(), unfinished("r"), with_checkpoint("1"));
    assert_eq!(write.await, Ok(true));
    put(store, response("r")).await;
    assert_eq!(checkpoint(store).await, None);
    // Nor does it get one, whatever is given along with it.
    let write = store.put_response(&alice(), response("r"), with_checkpoint("2"));
    assert_eq!(write.await, Ok(true));
    assert_eq!(checkpoint(store).await, None);
    // And it has not been hidden only.
    put(store, unfinished("r")).await;
    assert_eq!(checkpoint(store).await, None);
}

async fn a_checkpoint_for_a_response_that_is_unknown_finished_or_deleted_is_not_written(
    store: &dyn Store,
) {
    assert_eq!(note(store, "1", &[0]).await, Ok(false));
    put(store, response("r")).await;
    assert_eq!(note(store, "1", &[0]).await, Ok(false));
    assert_eq!(checkpoint(store).await, None);
    assert!(numbers(store).await.is_empty());
    put(store, unfinished("r")).await;
    put(store, continuing("r", "next")).await;
    assert!(store.delete_response(&alice(), "r").await.unwrap());
    assert_eq!(note(store, "1", &[0]).await, Ok(false));
    assert_eq!(checkpoint(store).await, None);
    put(store, unfinished("r")).await;
    assert_eq!(checkpoint(store).await, None);
    assert!(numbers(store).await.is_empty());
}

async fn a_checkpoint_whose_events_are_refused_is_not_written(store: &dyn Store) {
    put(store, unfinished("r")).await;
    assert_eq!(note(store, "1", &[0]).await, Ok(true));
    let refused = note(store, "2", &[1, u64::MAX]).await;
    assert!(matches!(refused, Err(StoreError::Failed(_))));
    assert_eq!(checkpoint(store).await.as_deref(), Some("1"));
    assert_eq!(numbers(store).await, [0]);
}

async fn a_response_whose_events_are_refused_is_not_written(store: &dyn Store) {
    store
        .put_conversation(&alice(), conversation("c"))
        .await
        .unwrap();
    let write = store.put_response(&alice(), unfinished("r"), with_checkpoint("1"));
    assert_eq!(write.await, Ok(true));
    let mut other = event(0);
    other.json = json("null");
    let both = Alongside {
        events: vec![event(0), other],
        ..appended_to("c")
    };
    let refused = store.put_response(&alice(), response("r"), both).await;
    assert!(matches!(refused, Err(StoreError::Failed(_))));
    let read = store.response(&alice(), "r").await.unwrap();
    assert_same!(read, Some(unfinished("r")));
    assert_eq!(checkpoint(store).await.as_deref(), Some("1"));
    assert!(numbers(store).await.is_empty());
    let items = store.conversation_items(&alice(), "c").await.unwrap();
    assert!(items.unwrap().is_empty());
}

async fn events_come_with_their_response(store: &dyn Store) {
    let write = store.put_response(&alice(), unfinished("r"), with_events(&[0]));
    assert_eq!(write.await, Ok(true));
    let write = store.put_response(&alice(), response("r"), with_events(&[1, 2]));
    assert_eq!(write.await, Ok(true));
    assert_eq!(numbers(store).await, [0, 1, 2]);
}

async fn events_are_written_although_the_conversation_is_gone(store: &dyn Store) {
    put(store, unfinished("r")).await;
    let both = Alongside {
        events: vec![event(0)],
        trace: Some(json("1")),
        ..appended_to("c")
    };
    let write = store.put_response(&alice(), response("r"), both);
    assert_eq!(write.await, Ok(false));
    assert_eq!(numbers(store).await, [0]);
    assert!(store.trace(&alice(), "r").await.unwrap().is_some());
    let found = store.item(&alice(), "r_out").await.unwrap();
    assert_same!(found, Some(item("r_out")));
}

async fn a_deleted_response_takes_its_checkpoint_along(store: &dyn Store) {
    for is_continued in [false, true] {
        let write = store.put_response(&alice(), unfinished("r"), with_checkpoint("1"));
        assert_eq!(write.await, Ok(true));
        if is_continued {
            put(store, continuing("r", "next")).await;
        }
        assert!(store.delete_response(&alice(), "r").await.unwrap());
        assert_eq!(checkpoint(store).await, None);
        put(store, unfinished("r")).await;
        assert_eq!(checkpoint(store).await, None);
    }
}

async fn a_checkpoint_of_another_owner_is_unknown(store: &dyn Store) {
    put(store, unfinished("r")).await;
    assert_eq!(note(store, "1", &[0]).await, Ok(true));
    assert!(store.checkpoint(&bob(), "r").await.unwrap().is_none());
    let foreign = store
        .put_checkpoint(&bob(), "r", json("2"), vec![event(1)])
        .await;
    assert_eq!(foreign, Ok(false));
    assert_eq!(checkpoint(store).await.as_deref(), Some("1"));
    assert_eq!(numbers(store).await, [0]);
}

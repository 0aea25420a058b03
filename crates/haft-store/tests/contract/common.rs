//! Records to write, and both stores to write them to.

use haft_core::{
    Alongside, Owner, Store, StoredConversation, StoredEvent, StoredItem, StoredResponse,
};
use haft_store::SqliteStore;
use serde_json::value::RawValue;
use tempfile::TempDir;

/// Makes a test of each promise for each store.
macro_rules! kept_by_both {
    ($($promise:ident),* $(,)?) => {
        mod in_sqlite {
            $(
                #[tokio::test]
                async fn $promise() {
                    let (_directory, store) = crate::common::sqlite();
                    super::$promise(&store).await;
                }
            )*
        }

        mod in_memory {
            $(
                #[tokio::test]
                async fn $promise() {
                    super::$promise(&haft_store::MemoryStore::new()).await;
                }
            )*
        }
    };
}

/// Records have no equality; their text has.
macro_rules! assert_same {
    ($left:expr, $right:expr $(,)?) => {
        assert_eq!(format!("{:#?}", $left), format!("{:#?}", $right))
    };
}

/// A store in a new file.
pub(crate) fn sqlite() -> (TempDir, SqliteStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("haft.db")).unwrap();
    (directory, store)
}

pub(crate) fn alice() -> Owner {
    Owner::new("alice")
}

pub(crate) fn bob() -> Owner {
    Owner::new("bob")
}

pub(crate) fn json(text: impl Into<String>) -> Box<RawValue> {
    RawValue::from_string(text.into()).unwrap()
}

pub(crate) fn item(id: &str) -> StoredItem {
    item_saying(id, "something")
}

pub(crate) fn item_saying(id: &str, text: &str) -> StoredItem {
    StoredItem {
        id: id.to_owned(),
        json: json(format!(r#"{{"id":"{id}", "text" : "{text}"}}"#)),
    }
}

/// A finished response with the items `<id>_in` and `<id>_out`.
pub(crate) fn response(id: &str) -> StoredResponse {
    StoredResponse {
        id: id.to_owned(),
        previous: None,
        created_at: 1_000,
        is_finished: true,
        resource: json(format!(r#"{{"id":"{id}","object":"response"}}"#)),
        input: vec![item(&format!("{id}_in"))],
        output: vec![item(&format!("{id}_out"))],
    }
}

pub(crate) fn continuing(previous: &str, id: &str) -> StoredResponse {
    StoredResponse {
        previous: Some(previous.to_owned()),
        ..response(id)
    }
}

pub(crate) fn unfinished(id: &str) -> StoredResponse {
    StoredResponse {
        is_finished: false,
        ..response(id)
    }
}

pub(crate) fn made_at(created_at: i64, response: StoredResponse) -> StoredResponse {
    StoredResponse {
        created_at,
        ..response
    }
}

pub(crate) fn conversation(id: &str) -> StoredConversation {
    StoredConversation {
        id: id.to_owned(),
        created_at: 1_000,
        metadata: json(r#"{"topic":"trees"}"#),
    }
}

pub(crate) fn event(sequence_number: u64) -> StoredEvent {
    StoredEvent {
        sequence_number,
        json: json(format!(r#"{{"sequence_number":{sequence_number}}}"#)),
    }
}

/// Writes these for Alice.
pub(crate) async fn put(store: &dyn Store, response: StoredResponse) {
    assert!(
        store
            .put_response(&alice(), response, Alongside::default())
            .await
            .unwrap()
    );
}

/// What a deleted response looks like in a chain.
pub(crate) fn tombstone(response: StoredResponse) -> StoredResponse {
    StoredResponse {
        resource: json("null"),
        ..response
    }
}

/// The ids of Alice's chain.
pub(crate) async fn chain_ids(store: &dyn Store, id: &str) -> Option<Vec<String>> {
    let chain = store.chain(&alice(), id).await.unwrap()?;
    Some(chain.into_iter().map(|response| response.id).collect())
}

/// Whether Alice's response is there.
pub(crate) async fn has(store: &dyn Store, id: &str) -> bool {
    store.response(&alice(), id).await.unwrap().is_some()
}

pub(crate) fn ids(items: &[StoredItem]) -> Vec<&str> {
    items.iter().map(|item| item.id.as_str()).collect()
}

/// Nothing goes along with it but the conversation that its items are added to.
pub(crate) fn appended_to(conversation: &str) -> Alongside {
    Alongside {
        append_to: Some(conversation.to_owned()),
        ..Alongside::default()
    }
}

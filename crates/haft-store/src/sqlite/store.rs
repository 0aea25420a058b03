//! The contract, method by method: to the writer or to a reader.

use haft_core::{
    Alongside, BoxFuture, ClaimedKeys, Cleaned, Owner, Page, PageQuery, ResponsePage, Retention,
    Store, StoreError, StoredConversation, StoredEvent, StoredItem, StoredResponse,
};
use serde_json::value::RawValue;

use super::notes::{self, Note};
use super::{
    SqliteStore, chains, cleaning, conversations, events, items, lists, responses, server_notes,
    taken,
};

impl Store for SqliteStore {
    fn put_response(
        &self,
        owner: &Owner,
        response: StoredResponse,
        alongside: Alongside,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let owner = owner.clone();
        Box::pin(
            self.writer
                .write(move |connection| responses::put(connection, &owner, &response, &alongside)),
        )
    }

    fn put_checkpoint(
        &self,
        owner: &Owner,
        response_id: &str,
        checkpoint: Box<RawValue>,
        events: Vec<StoredEvent>,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let (owner, response_id) = (owner.clone(), response_id.to_owned());
        Box::pin(self.writer.write(move |connection| {
            notes::put_checkpoint(connection, &owner, &response_id, &checkpoint, &events)
        }))
    }

    fn checkpoint(
        &self,
        owner: &Owner,
        response_id: &str,
    ) -> BoxFuture<'_, Result<Option<Box<RawValue>>, StoreError>> {
        let (owner, response_id) = (owner.clone(), response_id.to_owned());
        Box::pin(
            self.readers.read(move |connection| {
                notes::get(connection, Note::Checkpoint, &owner, &response_id)
            }),
        )
    }

    fn trace(
        &self,
        owner: &Owner,
        response_id: &str,
    ) -> BoxFuture<'_, Result<Option<Box<RawValue>>, StoreError>> {
        let (owner, response_id) = (owner.clone(), response_id.to_owned());
        Box::pin(
            self.readers
                .read(move |connection| notes::get(connection, Note::Trace, &owner, &response_id)),
        )
    }

    fn responses(
        &self,
        owner: Option<&Owner>,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<ResponsePage, StoreError>> {
        let owner = owner.cloned();
        Box::pin(
            self.readers
                .read(move |connection| lists::list(connection, owner.as_ref(), &query)),
        )
    }

    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        let write = self.writer.write(|connection| {
            // A number that changes: SQLite writes nothing where nothing changes.
            connection
                .prepare_cached("UPDATE checks SET count = count + 1")?
                .execute([])?;
            Ok(())
        });
        Box::pin(async move {
            tokio::time::timeout(self.check_wait, write)
                .await
                .unwrap_or(Err(StoreError::Busy))
        })
    }

    fn response(
        &self,
        owner: &Owner,
        id: &str,
    ) -> BoxFuture<'_, Result<Option<StoredResponse>, StoreError>> {
        let (owner, id) = (owner.clone(), id.to_owned());
        Box::pin(
            self.readers
                .read(move |connection| chains::one(connection, &owner, &id)),
        )
    }

    fn chain(
        &self,
        owner: &Owner,
        id: &str,
    ) -> BoxFuture<'_, Result<Option<Vec<StoredResponse>>, StoreError>> {
        let (owner, id) = (owner.clone(), id.to_owned());
        Box::pin(
            self.readers
                .read(move |connection| chains::chain(connection, &owner, &id)),
        )
    }

    fn delete_response(&self, owner: &Owner, id: &str) -> BoxFuture<'_, Result<bool, StoreError>> {
        let (owner, id) = (owner.clone(), id.to_owned());
        Box::pin(
            self.writer
                .write(move |connection| Ok(responses::delete(connection, &owner, &id)?.is_some())),
        )
    }

    fn item(
        &self,
        owner: &Owner,
        item_id: &str,
    ) -> BoxFuture<'_, Result<Option<StoredItem>, StoreError>> {
        let (owner, item_id) = (owner.clone(), item_id.to_owned());
        Box::pin(
            self.readers
                .read(move |connection| items::newest(connection, &owner, &item_id)),
        )
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<(Owner, StoredResponse)>, StoreError>> {
        Box::pin(self.readers.read(chains::unfinished))
    }

    fn append_events(
        &self,
        owner: &Owner,
        response_id: &str,
        events: Vec<StoredEvent>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let (owner, response_id) = (owner.clone(), response_id.to_owned());
        Box::pin(
            self.writer
                .write(move |connection| events::append(connection, &owner, &response_id, &events)),
        )
    }

    fn events(
        &self,
        owner: &Owner,
        response_id: &str,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredEvent>, StoreError>> {
        let (owner, response_id) = (owner.clone(), response_id.to_owned());
        Box::pin(
            self.readers.read(move |connection| {
                events::list(connection, &owner, &response_id, after, limit)
            }),
        )
    }

    fn put_conversation(
        &self,
        owner: &Owner,
        conversation: StoredConversation,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let owner = owner.clone();
        Box::pin(
            self.writer
                .write(move |connection| conversations::put(connection, &owner, &conversation)),
        )
    }

    fn conversation(
        &self,
        owner: &Owner,
        id: &str,
    ) -> BoxFuture<'_, Result<Option<StoredConversation>, StoreError>> {
        let (owner, id) = (owner.clone(), id.to_owned());
        Box::pin(
            self.readers
                .read(move |connection| conversations::get(connection, &owner, &id)),
        )
    }

    fn delete_conversation(
        &self,
        owner: &Owner,
        id: &str,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let (owner, id) = (owner.clone(), id.to_owned());
        Box::pin(
            self.writer
                .write(move |connection| conversations::delete(connection, &owner, &id)),
        )
    }

    fn append_items(
        &self,
        owner: &Owner,
        conversation_id: &str,
        items: Vec<StoredItem>,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let (owner, id) = (owner.clone(), conversation_id.to_owned());
        Box::pin(
            self.writer
                .write(move |connection| conversations::append(connection, &owner, &id, &items)),
        )
    }

    fn conversation_items(
        &self,
        owner: &Owner,
        conversation_id: &str,
    ) -> BoxFuture<'_, Result<Option<Vec<StoredItem>>, StoreError>> {
        let (owner, id) = (owner.clone(), conversation_id.to_owned());
        Box::pin(
            self.readers
                .read(move |connection| conversations::list(connection, &owner, &id)),
        )
    }

    fn conversation_page(
        &self,
        owner: &Owner,
        conversation_id: &str,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Option<Page>, StoreError>> {
        let (owner, id) = (owner.clone(), conversation_id.to_owned());
        Box::pin(
            self.readers
                .read(move |connection| conversations::page(connection, &owner, &id, &query)),
        )
    }

    fn delete_item(
        &self,
        owner: &Owner,
        conversation_id: &str,
        item_id: &str,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let owner = owner.clone();
        let (id, item_id) = (conversation_id.to_owned(), item_id.to_owned());
        Box::pin(
            self.writer.write(move |connection| {
                conversations::delete_item(connection, &owner, &id, &item_id)
            }),
        )
    }

    fn take_once(
        &self,
        owner: &Owner,
        key: &str,
        note: &str,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let (owner, key, note) = (owner.clone(), key.to_owned(), note.to_owned());
        Box::pin(
            self.writer
                .write(move |connection| taken::take(connection, &owner, &key, &note)),
        )
    }

    fn taken(
        &self,
        owner: &Owner,
        keys: Vec<String>,
    ) -> BoxFuture<'_, Result<ClaimedKeys, StoreError>> {
        let owner = owner.clone();
        Box::pin(
            self.readers
                .read(move |connection| taken::list(connection, &owner, keys)),
        )
    }

    fn server_note(&self, key: &str) -> BoxFuture<'_, Result<Option<String>, StoreError>> {
        let key = key.to_owned();
        Box::pin(
            self.readers
                .read(move |connection| server_notes::get(connection, &key)),
        )
    }

    fn put_server_note(&self, key: &str, note: &str) -> BoxFuture<'_, Result<(), StoreError>> {
        let (key, note) = (key.to_owned(), note.to_owned());
        Box::pin(
            self.writer
                .write(move |connection| server_notes::put(connection, &key, &note)),
        )
    }

    fn clean(
        &self,
        retention: Retention,
        now: i64,
        batch: usize,
    ) -> BoxFuture<'_, Result<Cleaned, StoreError>> {
        Box::pin(
            self.writer
                .write(move |connection| cleaning::clean(connection, retention, now, batch)),
        )
    }
}

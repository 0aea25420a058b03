//! The contract, method by method: to the writer or to a reader.

use haft_core::{
    BoxFuture, Cleaned, Owner, Page, PageQuery, Retention, Store, StoreError, StoredConversation,
    StoredEvent, StoredItem, StoredResponse,
};

use super::{SqliteStore, chains, cleaning, conversations, events, items, responses};

impl Store for SqliteStore {
    fn put_response(
        &self,
        owner: &Owner,
        response: StoredResponse,
        append_to: Option<&str>,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let (owner, append_to) = (owner.clone(), append_to.map(str::to_owned));
        Box::pin(self.writer.write(move |connection| {
            responses::put(connection, &owner, &response, append_to.as_deref())
        }))
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

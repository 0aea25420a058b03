//! The contract, method by method.

use std::ops::Bound;

use haft_core::{
    Alongside, BoxFuture, ClaimedKeys, Cleaned, Owner, Page, PageQuery, ResponsePage, Retention,
    Store, StoreError, StoredConversation, StoredEvent, StoredItem, StoredResponse,
};
use serde_json::value::RawValue;

use super::records::stored_items;
use super::{MemoryStore, State};

/// An answer that is there at once.
fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl Store for MemoryStore {
    fn put_response(
        &self,
        owner: &Owner,
        response: StoredResponse,
        alongside: Alongside,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let mut state = self.state();
        let State { owners, seq, .. } = &mut *state;
        let records = owners.entry(owner.clone()).or_default();
        ready(records.put_response(response, alongside, seq))
    }

    fn put_checkpoint(
        &self,
        owner: &Owner,
        response_id: &str,
        checkpoint: Box<RawValue>,
        events: Vec<StoredEvent>,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let mut state = self.state();
        let response = state
            .living_mut(owner, response_id)
            .filter(|response| !response.is_finished);
        let Some(response) = response else {
            return ready(Ok(false));
        };
        let noted = response.append_events(response_id, events);
        ready(noted.map(|()| {
            response.checkpoint = Some(checkpoint);
            true
        }))
    }

    fn checkpoint(
        &self,
        owner: &Owner,
        response_id: &str,
    ) -> BoxFuture<'_, Result<Option<Box<RawValue>>, StoreError>> {
        let state = self.state();
        let response = state.living(owner, response_id);
        ready(Ok(response.and_then(|response| response.checkpoint.clone())))
    }

    fn trace(
        &self,
        owner: &Owner,
        response_id: &str,
    ) -> BoxFuture<'_, Result<Option<Box<RawValue>>, StoreError>> {
        let state = self.state();
        let response = state.living(owner, response_id);
        ready(Ok(response.and_then(|response| response.trace.clone())))
    }

    fn responses(
        &self,
        owner: Option<&Owner>,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<ResponsePage, StoreError>> {
        ready(self.state().list(owner, &query))
    }

    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        ready(Ok(()))
    }

    fn response(
        &self,
        owner: &Owner,
        id: &str,
    ) -> BoxFuture<'_, Result<Option<StoredResponse>, StoreError>> {
        let state = self.state();
        let response = state.living(owner, id);
        ready(Ok(response.map(|response| response.stored(id))))
    }

    fn chain(
        &self,
        owner: &Owner,
        id: &str,
    ) -> BoxFuture<'_, Result<Option<Vec<StoredResponse>>, StoreError>> {
        let state = self.state();
        let records = state.owners.get(owner);
        ready(records.map_or(Ok(None), |records| records.chain(id)))
    }

    fn delete_response(&self, owner: &Owner, id: &str) -> BoxFuture<'_, Result<bool, StoreError>> {
        let mut state = self.state();
        let records = state.owners.get_mut(owner);
        let deleted = records.and_then(|records| records.delete_response(id));
        ready(Ok(deleted.is_some()))
    }

    fn item(
        &self,
        owner: &Owner,
        item_id: &str,
    ) -> BoxFuture<'_, Result<Option<StoredItem>, StoreError>> {
        let state = self.state();
        let newest = state
            .owners
            .get(owner)
            .and_then(|records| records.visible.get(item_id)?.values().next_back());
        ready(Ok(newest.map(|item| item.as_ref().clone())))
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<(Owner, StoredResponse)>, StoreError>> {
        let state = self.state();
        let mut found = Vec::new();
        for (owner, records) in &state.owners {
            for (id, response) in &records.responses {
                if !response.is_finished && !response.is_deleted() {
                    found.push((response.seq, owner.clone(), response.stored(id)));
                }
            }
        }
        found.sort_by_key(|(seq, ..)| *seq);
        let in_order = found
            .into_iter()
            .map(|(_, owner, response)| (owner, response));
        ready(Ok(in_order.collect()))
    }

    fn append_events(
        &self,
        owner: &Owner,
        response_id: &str,
        events: Vec<StoredEvent>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut state = self.state();
        ready(match state.living_mut(owner, response_id) {
            Some(response) => response.append_events(response_id, events),
            None => Ok(()),
        })
    }

    fn events(
        &self,
        owner: &Owner,
        response_id: &str,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredEvent>, StoreError>> {
        let state = self.state();
        let Some(response) = state.living(owner, response_id) else {
            return ready(Ok(Vec::new()));
        };
        // Numbers are at least zero; behind one that cannot be stored there is nothing.
        let after = after.map_or(-1, |after| i64::try_from(after).unwrap_or(i64::MAX));
        let behind = response
            .events
            .range((Bound::Excluded(after), Bound::Unbounded));
        let events = behind.take(limit).map(|(number, json)| StoredEvent {
            sequence_number: number.unsigned_abs(),
            json: json.clone(),
        });
        ready(Ok(events.collect()))
    }

    fn put_conversation(
        &self,
        owner: &Owner,
        conversation: StoredConversation,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut state = self.state();
        let records = state.owners.entry(owner.clone()).or_default();
        records.put_conversation(conversation);
        ready(Ok(()))
    }

    fn conversation(
        &self,
        owner: &Owner,
        id: &str,
    ) -> BoxFuture<'_, Result<Option<StoredConversation>, StoreError>> {
        let state = self.state();
        let found = state
            .owners
            .get(owner)
            .and_then(|records| records.conversations.get(id));
        ready(Ok(found.map(|conversation| StoredConversation {
            id: id.to_owned(),
            created_at: conversation.created_at,
            metadata: conversation.metadata.clone(),
        })))
    }

    fn delete_conversation(
        &self,
        owner: &Owner,
        id: &str,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let mut state = self.state();
        let records = state.owners.get_mut(owner);
        let deleted = records.and_then(|records| records.delete_conversation(id));
        ready(Ok(deleted.is_some()))
    }

    fn append_items(
        &self,
        owner: &Owner,
        conversation_id: &str,
        items: Vec<StoredItem>,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let mut state = self.state();
        let State { owners, seq, .. } = &mut *state;
        let records = owners.get_mut(owner);
        let is_there =
            records.is_some_and(|records| records.append_items(conversation_id, items, seq));
        ready(Ok(is_there))
    }

    fn conversation_items(
        &self,
        owner: &Owner,
        conversation_id: &str,
    ) -> BoxFuture<'_, Result<Option<Vec<StoredItem>>, StoreError>> {
        let state = self.state();
        let found = state
            .owners
            .get(owner)
            .and_then(|records| records.conversations.get(conversation_id));
        ready(Ok(
            found.map(|conversation| stored_items(&conversation.items))
        ))
    }

    fn conversation_page(
        &self,
        owner: &Owner,
        conversation_id: &str,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Option<Page>, StoreError>> {
        let state = self.state();
        let found = state
            .owners
            .get(owner)
            .and_then(|records| records.conversations.get(conversation_id));
        ready(
            found
                .map(|conversation| conversation.page(&query))
                .transpose(),
        )
    }

    fn delete_item(
        &self,
        owner: &Owner,
        conversation_id: &str,
        item_id: &str,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let mut state = self.state();
        let records = state.owners.get_mut(owner);
        let is_deleted =
            records.is_some_and(|records| records.delete_item(conversation_id, item_id));
        ready(Ok(is_deleted))
    }

    fn take_once(
        &self,
        owner: &Owner,
        key: &str,
        note: &str,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let mut state = self.state();
        let records = state.owners.entry(owner.clone()).or_default();
        let is_free = !records.taken.contains_key(key);
        if is_free {
            records.taken.insert(key.to_owned(), note.to_owned());
        }
        ready(Ok(is_free))
    }

    fn taken(
        &self,
        owner: &Owner,
        keys: Vec<String>,
    ) -> BoxFuture<'_, Result<ClaimedKeys, StoreError>> {
        let state = self.state();
        let records = state.owners.get(owner);
        let note = |key: &String| records.and_then(|records| records.taken.get(key)).cloned();
        let taken = keys.into_iter().filter_map(|key| {
            let note = note(&key)?;
            Some((key, Some(note)))
        });
        ready(Ok(taken.collect()))
    }

    fn server_note(&self, key: &str) -> BoxFuture<'_, Result<Option<String>, StoreError>> {
        ready(Ok(self.state().server_notes.get(key).cloned()))
    }

    fn put_server_note(&self, key: &str, note: &str) -> BoxFuture<'_, Result<(), StoreError>> {
        let (key, note) = (key.to_owned(), note.to_owned());
        self.state().server_notes.insert(key, note);
        ready(Ok(()))
    }

    fn clean(
        &self,
        retention: Retention,
        now: i64,
        batch: usize,
    ) -> BoxFuture<'_, Result<Cleaned, StoreError>> {
        ready(Ok(self.state().clean(retention, now, batch)))
    }
}

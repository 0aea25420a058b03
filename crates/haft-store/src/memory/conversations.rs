//! Conversations and their items.

use std::sync::Arc;

use haft_core::{Page, PageQuery, StoreError, StoredConversation, StoredItem};

use super::records::{ConversationRecord, Kept, Records, stored_items};
use super::responses::next;
use crate::clock;

impl Records {
    /// Writes the record of a conversation.
    pub(super) fn put_conversation(&mut self, conversation: StoredConversation) {
        let items = self
            .conversations
            .remove(&conversation.id)
            .map(|earlier| earlier.items);
        let record = ConversationRecord {
            created_at: conversation.created_at,
            touched_at: clock::now(),
            metadata: conversation.metadata,
            items: items.unwrap_or_default(),
        };
        self.conversations.insert(conversation.id, record);
    }

    /// Removes a conversation with its items. How many bytes; none if there was no such conversation.
    pub(super) fn delete_conversation(&mut self, id: &str) -> Option<u64> {
        let gone = self.conversations.remove(id)?;
        Self::hide(&mut self.visible, &gone.items);
        Some(gone.bytes())
    }

    /// Adds items at the end. Says whether there was such a conversation.
    pub(super) fn append_items(
        &mut self,
        id: &str,
        items: impl IntoIterator<Item = StoredItem>,
        seq: &mut u64,
    ) -> bool {
        let Some(conversation) = self.conversations.get_mut(id) else {
            return false;
        };
        let kept: Vec<Kept> = items
            .into_iter()
            .map(|item| Kept {
                seq: next(seq),
                is_output: false,
                item: Arc::new(item),
            })
            .collect();
        Self::show(&mut self.visible, &kept);
        conversation.items.extend(kept);
        conversation.touched_at = clock::now();
        true
    }

    /// Removes an item. Says whether there was one.
    pub(super) fn delete_item(&mut self, id: &str, item_id: &str) -> bool {
        let Some(conversation) = self.conversations.get_mut(id) else {
            return false;
        };
        let (gone, left): (Vec<_>, Vec<_>) = std::mem::take(&mut conversation.items)
            .into_iter()
            .partition(|kept| kept.item.id == item_id);
        conversation.items = left;
        if gone.is_empty() {
            return false;
        }
        Self::hide(&mut self.visible, &gone);
        conversation.touched_at = clock::now();
        true
    }
}

impl ConversationRecord {
    /// A piece of the items.
    pub(super) fn page(&self, query: &PageQuery) -> Result<Page, StoreError> {
        let mut ordered: Vec<&Kept> = self.items.iter().collect();
        if query.is_descending {
            ordered.reverse();
        }
        let begin = match &query.after {
            None => 0,
            Some(after) => ordered
                .iter()
                .rposition(|kept| kept.item.id == *after)
                .map(|position| position + 1)
                .ok_or_else(|| StoreError::UnknownItem { id: after.clone() })?,
        };
        let behind = ordered.get(begin..).unwrap_or_default();
        Ok(Page {
            items: stored_items(behind.iter().copied().take(query.limit)),
            has_more: behind.len() > query.limit,
        })
    }
}

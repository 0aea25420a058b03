//! What is kept for one owner.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use haft_core::{StoredItem, StoredResponse};
use serde_json::value::RawValue;

/// All records of an owner.
#[derive(Default)]
pub(super) struct Records {
    pub(super) responses: HashMap<String, ResponseRecord>,
    /// How many responses, deleted ones included, continue the one of this id.
    pub(super) continuations: HashMap<String, usize>,
    pub(super) conversations: HashMap<String, ConversationRecord>,
    /// Claimed keys, each with its note.
    pub(super) taken: HashMap<String, String>,
    /// Items that anybody may see, by id and then by age.
    pub(super) visible: HashMap<String, BTreeMap<u64, Arc<StoredItem>>>,
}

/// A response, or what is left of a deleted one.
pub(super) struct ResponseRecord {
    pub(super) seq: u64,
    pub(super) previous: Option<String>,
    pub(super) created_at: i64,
    pub(super) is_finished: bool,
    /// None if it is deleted; then it is here only because a living one continues it.
    pub(super) resource: Option<Box<RawValue>>,
    pub(super) items: Vec<Kept>,
    pub(super) events: BTreeMap<i64, Box<RawValue>>,
    /// Only what is unfinished has one.
    pub(super) checkpoint: Option<Box<RawValue>>,
    pub(super) trace: Option<Box<RawValue>>,
}

pub(super) struct ConversationRecord {
    pub(super) created_at: i64,
    pub(super) touched_at: i64,
    pub(super) metadata: Box<RawValue>,
    pub(super) items: Vec<Kept>,
}

/// An item at its place in the order of writing.
pub(super) struct Kept {
    pub(super) seq: u64,
    pub(super) is_output: bool,
    pub(super) item: Arc<StoredItem>,
}

impl Kept {
    pub(super) fn is_same(&self, is_output: bool, item: &StoredItem) -> bool {
        self.is_output == is_output
            && self.item.id == item.id
            && self.item.json.get() == item.json.get()
    }
}

impl Records {
    /// Lets these items be found.
    pub(super) fn show(
        visible: &mut HashMap<String, BTreeMap<u64, Arc<StoredItem>>>,
        items: &[Kept],
    ) {
        for kept in items {
            visible
                .entry(kept.item.id.clone())
                .or_default()
                .insert(kept.seq, Arc::clone(&kept.item));
        }
    }

    /// Lets these items be found no more.
    pub(super) fn hide(
        visible: &mut HashMap<String, BTreeMap<u64, Arc<StoredItem>>>,
        items: &[Kept],
    ) {
        for kept in items {
            if let Some(same) = visible.get_mut(&kept.item.id) {
                same.remove(&kept.seq);
                if same.is_empty() {
                    visible.remove(&kept.item.id);
                }
            }
        }
    }

    /// The bytes of all JSON.
    pub(super) fn bytes(&self) -> u64 {
        let responses = self.responses.values().map(ResponseRecord::bytes);
        let conversations = self.conversations.values().map(ConversationRecord::bytes);
        responses.chain(conversations).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.responses.is_empty() && self.conversations.is_empty()
    }
}

impl ResponseRecord {
    pub(super) fn is_deleted(&self) -> bool {
        self.resource.is_none()
    }

    /// The response as it is given out.
    pub(super) fn stored(&self, id: &str) -> StoredResponse {
        let (output, input): (Vec<_>, Vec<_>) = self.items.iter().partition(|kept| kept.is_output);
        StoredResponse {
            id: id.to_owned(),
            previous: self.previous.clone(),
            created_at: self.created_at,
            is_finished: self.is_finished,
            resource: self
                .resource
                .clone()
                .unwrap_or_else(|| RawValue::NULL.to_owned()),
            input: stored_items(input),
            output: stored_items(output),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let resource = self.resource.as_deref().map_or(0, length);
        let events: u64 = self.events.values().map(|json| length(json)).sum();
        let checkpoint = self.checkpoint.as_deref().map_or(0, length);
        let trace = self.trace.as_deref().map_or(0, length);
        resource + events + checkpoint + trace + items_bytes(&self.items)
    }
}

impl ConversationRecord {
    pub(super) fn bytes(&self) -> u64 {
        length(&self.metadata) + items_bytes(&self.items)
    }
}

/// Items as they are given out.
pub(super) fn stored_items<'a>(items: impl IntoIterator<Item = &'a Kept>) -> Vec<StoredItem> {
    items
        .into_iter()
        .map(|kept| kept.item.as_ref().clone())
        .collect()
}

fn items_bytes(items: &[Kept]) -> u64 {
    items.iter().map(|kept| length(&kept.item.json)).sum()
}

fn length(json: &RawValue) -> u64 {
    json.get().len() as u64
}

//! A store that notes down what it is asked: who asks for what he may not see must not cause more, or
//! less, than who asks for what is not there.

use std::sync::Mutex;

use haft_core::{
    Alongside, BoxFuture, Cleaned, Owner, Page, PageQuery, ResponsePage, Retention, Store,
    StoreError, StoredConversation, StoredEvent, StoredItem, StoredResponse,
};
use haft_store::MemoryStore;
use serde_json::value::RawValue;

#[derive(Default)]
pub(crate) struct NotedStore {
    store: MemoryStore,
    asked: Mutex<Vec<&'static str>>,
}

impl NotedStore {
    /// What it was asked since the last time.
    pub(crate) fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

macro_rules! noted {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $given:ty;)*) => {
        impl Store for NotedStore {
            $(fn $name(&self, $($argument: $type),*) -> BoxFuture<'_, Result<$given, StoreError>> {
                self.asked.lock().unwrap().push(stringify!($name));
                self.store.$name($($argument),*)
            })*
        }
    };
}

noted! {
    fn put_response(owner: &Owner, response: StoredResponse, alongside: Alongside) -> bool;
    fn put_checkpoint(owner: &Owner, id: &str, checkpoint: Box<RawValue>, events: Vec<StoredEvent>) -> bool;
    fn checkpoint(owner: &Owner, id: &str) -> Option<Box<RawValue>>;
    fn trace(owner: &Owner, id: &str) -> Option<Box<RawValue>>;
    fn responses(owner: Option<&Owner>, query: PageQuery) -> ResponsePage;
    fn check() -> ();
    fn response(owner: &Owner, id: &str) -> Option<StoredResponse>;
    fn chain(owner: &Owner, id: &str) -> Option<Vec<StoredResponse>>;
    fn delete_response(owner: &Owner, id: &str) -> bool;
    fn item(owner: &Owner, id: &str) -> Option<StoredItem>;
    fn take_once(owner: &Owner, key: &str, note: &str) -> bool;
    fn taken(owner: &Owner, keys: Vec<String>) -> Vec<(String, Option<String>)>;
    fn unfinished() -> Vec<(Owner, StoredResponse)>;
    fn append_events(owner: &Owner, id: &str, events: Vec<StoredEvent>) -> ();
    fn events(owner: &Owner, id: &str, after: Option<u64>, limit: usize) -> Vec<StoredEvent>;
    fn put_conversation(owner: &Owner, conversation: StoredConversation) -> ();
    fn conversation(owner: &Owner, id: &str) -> Option<StoredConversation>;
    fn delete_conversation(owner: &Owner, id: &str) -> bool;
    fn append_items(owner: &Owner, id: &str, items: Vec<StoredItem>) -> bool;
    fn conversation_items(owner: &Owner, id: &str) -> Option<Vec<StoredItem>>;
    fn conversation_page(owner: &Owner, id: &str, query: PageQuery) -> Option<Page>;
    fn delete_item(owner: &Owner, id: &str, item_id: &str) -> bool;
    fn server_note(key: &str) -> Option<String>;
    fn put_server_note(key: &str, note: &str) -> ();
    fn clean(retention: Retention, now: i64, batch: usize) -> Cleaned;
}

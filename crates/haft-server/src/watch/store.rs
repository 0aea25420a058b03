//! A store that is timed: the same store, and how long each of its operations took.

use std::sync::Arc;
use std::time::Instant;

use haft_core::{
    Alongside, BoxFuture, Cleaned, Owner, Page, PageQuery, ResponsePage, Retention, Store,
    StoreError, StoredConversation, StoredEvent, StoredItem, StoredResponse,
};
use serde_json::value::RawValue;

use super::Watch;
use super::metrics::{OperationLabels, StoreErrorLabels, Word};

/// A store under watch.
struct TimedStore {
    store: Arc<dyn Store>,
    watch: Arc<Watch>,
}

/// The same store, timed.
pub(crate) fn timed(store: Arc<dyn Store>, watch: &Arc<Watch>) -> Arc<dyn Store> {
    let watch = Arc::clone(watch);
    Arc::new(TimedStore { store, watch })
}

impl TimedStore {
    fn timed<'s, T: Send + 's>(
        &'s self,
        operation: Word,
        doing: BoxFuture<'s, Result<T, StoreError>>,
    ) -> BoxFuture<'s, Result<T, StoreError>> {
        let started = Instant::now();
        Box::pin(async move {
            let done = doing.await;
            let meters = &self.watch.metrics.meters;
            let seconds = started.elapsed().as_secs_f64();
            let labels = OperationLabels { operation };
            meters.store_seconds.get_or_create(&labels).observe(seconds);
            let error = match &done {
                // A question after something that is not there is answered well.
                Ok(_) | Err(StoreError::UnknownItem { .. }) => return done,
                Err(StoreError::Busy) => "busy",
                Err(_) => "failed",
            };
            let labels = StoreErrorLabels { operation, error };
            meters.store_errors.get_or_create(&labels).inc();
            done
        })
    }
}

macro_rules! timed {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $given:ty;)*) => {$(
        fn $name(&self, $($argument: $type),*) -> BoxFuture<'_, Result<$given, StoreError>> {
            self.timed(stringify!($name), self.store.$name($($argument),*))
        }
    )*};
}

impl Store for TimedStore {
    timed! {
        fn put_response(owner: &Owner, response: StoredResponse, alongside: Alongside) -> bool;
        fn put_checkpoint(
            owner: &Owner,
            response_id: &str,
            checkpoint: Box<RawValue>,
            events: Vec<StoredEvent>
        ) -> bool;
        fn checkpoint(owner: &Owner, response_id: &str) -> Option<Box<RawValue>>;
        fn trace(owner: &Owner, response_id: &str) -> Option<Box<RawValue>>;
        fn responses(owner: Option<&Owner>, query: PageQuery) -> ResponsePage;
        fn check() -> ();
        fn response(owner: &Owner, id: &str) -> Option<StoredResponse>;
        fn chain(owner: &Owner, id: &str) -> Option<Vec<StoredResponse>>;
        fn delete_response(owner: &Owner, id: &str) -> bool;
        fn item(owner: &Owner, item_id: &str) -> Option<StoredItem>;
        fn take_once(owner: &Owner, key: &str, note: &str) -> bool;
        fn taken(owner: &Owner, keys: Vec<String>) -> Vec<(String, Option<String>)>;
        fn unfinished() -> Vec<(Owner, StoredResponse)>;
        fn append_events(owner: &Owner, response_id: &str, events: Vec<StoredEvent>) -> ();
        fn events(
            owner: &Owner,
            response_id: &str,
            after: Option<u64>,
            limit: usize
        ) -> Vec<StoredEvent>;
        fn put_conversation(owner: &Owner, conversation: StoredConversation) -> ();
        fn conversation(owner: &Owner, id: &str) -> Option<StoredConversation>;
        fn delete_conversation(owner: &Owner, id: &str) -> bool;
        fn append_items(owner: &Owner, conversation_id: &str, items: Vec<StoredItem>) -> bool;
        fn conversation_items(owner: &Owner, conversation_id: &str) -> Option<Vec<StoredItem>>;
        fn conversation_page(
            owner: &Owner,
            conversation_id: &str,
            query: PageQuery
        ) -> Option<Page>;
        fn delete_item(owner: &Owner, conversation_id: &str, item_id: &str) -> bool;
        fn server_note(key: &str) -> Option<String>;
        fn put_server_note(key: &str, note: &str) -> ();
        fn clean(retention: Retention, now: i64, batch: usize) -> Cleaned;
    }
}

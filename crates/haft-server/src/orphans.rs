//! Background responses that nobody works on any more: a process died under them, or their run broke.
//!
//! Each is failed with the true reason, stored first and told then, like every other end.

use std::collections::BTreeMap;

use haft_core::{Alongside, Owner, StoredItem, StoredResponse};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::app::{App, store_failed};
use crate::error::{ApiError, ErrorCode, without_content};
use crate::live::{LiveRun, stored_event};
use crate::stream::WireEvent;
use crate::wire::{ResponseError, ResponseResource, ResponseStatus};

/// Fails a response that a dead process left behind and that nobody can go on with.
pub(crate) async fn settle_orphan(
    app: &App,
    owner: &Owner,
    mut orphan: StoredResponse,
    log: &[WireEvent],
    error: &ApiError,
) -> Result<(), ApiError> {
    let items = log.iter().filter_map(|event| finished_item(&event.json));
    let items: BTreeMap<_, _> = items.collect();
    orphan.output = items.into_values().collect();
    // A log that has its end keeps it.
    let next = log.last().filter(|last| !last.is_terminal());
    let next = next.map(|last| last.sequence_number + 1);
    fail(app, owner, orphan, next, error).await.map(drop)
}

/// Fails a response whose run broke, and ends what there is of it here.
pub(crate) async fn settle_broken(app: &App, live: &LiveRun) {
    live.flushed().await;
    let events = last_of_broken(app, live).await.unwrap_or_else(|error| {
        tracing::error!(%error, id = live.id, "a broken response stays unfinished");
        Vec::new()
    });
    live.add_written(events);
    live.end().await;
}

async fn last_of_broken(app: &App, live: &LiveRun) -> Result<Vec<WireEvent>, ApiError> {
    let orphan = app.store.response(&live.owner, &live.id).await;
    let Some(mut orphan) = orphan.map_err(store_failed)? else {
        return Ok(Vec::new());
    };
    orphan.output = live.finished_items();
    let error = ApiError::new(
        ErrorCode::ServerError,
        "the server broke over this response",
    );
    fail(app, &live.owner, orphan, live.next_number(), &error).await
}

/// Stores a response as failed, with its last events, from `next` on; none where it has no log. Gives
/// these.
async fn fail(
    app: &App,
    owner: &Owner,
    mut orphan: StoredResponse,
    next: Option<u64>,
    error: &ApiError,
) -> Result<Vec<WireEvent>, ApiError> {
    if orphan.is_finished {
        return Ok(Vec::new());
    }
    let resource = serde_json::from_str::<ResponseResource>(orphan.resource.get());
    let mut resource = match resource {
        Ok(resource) => resource,
        Err(error) => {
            let error = without_content(&error);
            tracing::error!(error, id = orphan.id, "a stored response cannot be read");
            return Ok(Vec::new());
        }
    };
    resource.status = ResponseStatus::Failed;
    resource.error = Some(ResponseError {
        code: error.code.as_str().to_owned(),
        message: error.message.clone(),
    });
    orphan.is_finished = true;
    if let Ok(json) = serde_json::value::to_raw_value(&resource) {
        orphan.resource = json;
    }
    // What the log holds was chosen when it was written: all of it may be seen.
    let items = orphan.output.iter();
    let items = items.filter_map(|item| serde_json::from_str(item.json.get()).ok());
    resource.output = items.collect();
    let events = next.map_or_else(Vec::new, |next| WireEvent::failure(next, &resource, error));
    let alongside = Alongside {
        events: events.iter().filter_map(stored_event).collect(),
        ..Alongside::default()
    };
    let put = app.store.put_response(owner, orphan, alongside).await;
    put.map_err(store_failed)?;
    Ok(events)
}

/// The item that an event says is done, and its place.
pub(crate) fn finished_item(event: &str) -> Option<(usize, StoredItem)> {
    #[derive(Deserialize)]
    struct Done {
        output_index: usize,
        item: Box<RawValue>,
    }
    #[derive(Deserialize)]
    struct Named {
        id: String,
    }
    if !event.starts_with(r#"{"type":"response.output_item.done""#) {
        return None;
    }
    let done: Done = serde_json::from_str(event).ok()?;
    let named: Named = serde_json::from_str(done.item.get()).ok()?;
    let item = StoredItem {
        id: named.id,
        json: done.item,
    };
    Some((done.output_index, item))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use haft_core::Cancel;
    use haft_models::OfflineModel;
    use haft_store::MemoryStore;
    use serde_json::{Value, json};

    use super::*;
    use crate::models::ModelEntry;
    use crate::server::Server;
    use crate::wire::{CreateRequest, Door, Vocabulary};

    #[tokio::test]
    async fn a_response_whose_run_broke_is_failed_where_it_is_stored_and_where_it_is_followed() {
        let server = Server::builder(Arc::new(MemoryStore::new()))
            .model(ModelEntry::new("default", OfflineModel::new()))
            .build()
            .unwrap();
        let app = server.app();
        let body = json!({"input": "hi", "background": true, "stream": true});
        let request = CreateRequest::read(body, Door::Http, &Vocabulary::default()).unwrap();
        let resource = ResponseResource::begun("resp_1", 1, "default", &request);
        let owner = Owner::default();
        let queued = StoredResponse {
            id: "resp_1".into(),
            previous: None,
            created_at: 1,
            is_finished: false,
            resource: serde_json::value::to_raw_value(&resource).unwrap(),
            input: Vec::new(),
            output: Vec::new(),
        };
        let put = app
            .store
            .put_response(&owner, queued, Alongside::default())
            .await;
        put.unwrap();
        let id = String::from("resp_1");
        let live = LiveRun::new(owner.clone(), id, Cancel::new(), true, Vec::new());
        let writer = Arc::clone(&live).write_events(Arc::clone(&app.store));
        tokio::spawn(writer);
        settle_broken(app, &live).await;
        let stored = app.store.response(&owner, "resp_1").await;
        let stored = stored.unwrap().unwrap();
        assert!(stored.is_finished);
        let resource: Value = serde_json::from_str(stored.resource.get()).unwrap();
        assert_eq!(resource["status"], "failed");
        assert_eq!(resource["error"]["code"], "server_error");
        let logged = app.store.events(&owner, "resp_1", None, 10).await.unwrap();
        let kinds: Vec<_> = logged
            .iter()
            .map(|event| WireEvent::stored(0, event.json.get()).unwrap().kind)
            .collect();
        assert_eq!(kinds, ["error", "response.failed"]);
    }
}

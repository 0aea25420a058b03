//! Where a response is kept, and its last way there.

use std::time::Duration;

use haft_core::{Alongside, Owner, StoreError, StoredItem, StoredResponse};
use serde_json::value::{RawValue, to_raw_value};

use crate::app::{App, store_failed};
use crate::durable::Durable;
use crate::stream::{Finished, OutputItem};
use crate::wire::{ResponseResource, ResponseStatus};

/// How often a store that has too much to write is asked to store a response.
const STORE_TRIES: u32 = 20;

/// The pause between two of these times.
const STORE_PAUSE: Duration = Duration::from_millis(250);

/// Where a response is kept.
pub(crate) struct Place {
    pub(crate) owner: Owner,
    pub(crate) previous: Option<String>,
    pub(crate) conversation: Option<String>,
    pub(crate) input: Vec<StoredItem>,
    pub(crate) is_stored: bool,
}

impl Place {
    /// The record of a response; none if it cannot be written as JSON, which cannot happen.
    pub(crate) fn response(
        &self,
        resource: &ResponseResource,
        items: &[OutputItem],
        is_finished: bool,
    ) -> Option<StoredResponse> {
        let output = items.iter().map(|item| {
            Some(StoredItem {
                id: item.id.clone(),
                json: to_raw_value(&item.json).ok()?,
            })
        });
        Some(StoredResponse {
            id: resource.id.clone(),
            previous: self.previous.clone(),
            created_at: resource.created_at,
            is_finished,
            resource: to_raw_value(resource).ok()?,
            input: self.input.clone(),
            output: output.collect::<Option<_>>()?,
        })
    }
}

/// A response that is over, and whether it and its last events are written down.
pub(super) struct Kept {
    pub(super) finished: Finished,
    pub(super) is_written: bool,
}

impl Kept {
    pub(super) fn unwritten(finished: Finished) -> Self {
        Self {
            finished,
            is_written: false,
        }
    }
}

/// Stores a finished response before anybody is told; one that cannot be stored has failed.
pub(super) async fn keep(
    app: &App,
    place: &Place,
    finished: Finished,
    trace: Option<Box<RawValue>>,
    durable: Option<&Durable>,
) -> Kept {
    if !place.is_stored {
        return Kept::unwritten(finished);
    }
    let is_whole = !matches!(
        finished.resource.status,
        ResponseStatus::Failed | ResponseStatus::Cancelled
    );
    let alongside = Alongside {
        append_to: place.conversation.clone().filter(|_| is_whole),
        events: durable.map_or_else(Vec::new, |durable| durable.stored(&finished.events)),
        trace,
        ..Alongside::default()
    };
    let mut tries = 1;
    loop {
        let Some(response) = place.response(&finished.resource, &finished.items, true) else {
            return Kept::unwritten(finished);
        };
        let put = app
            .store
            .put_response(&place.owner, response, alongside.clone());
        match put.await {
            Ok(_) => {
                return Kept {
                    finished,
                    is_written: true,
                };
            }
            // What took minutes to make is worth some seconds of waiting.
            Err(StoreError::Busy) if tries < STORE_TRIES => {
                tries += 1;
                tokio::time::sleep(STORE_PAUSE).await;
            }
            Err(error) => {
                return Kept::unwritten(finished.unstored(&store_failed(error)));
            }
        }
    }
}

//! Background runs that survive their process: what is noted down of them, and when.
//!
//! A checkpoint and the events that it accounts for are written in one step. What a run told after its
//! last checkpoint is at most the beginning of an answer in words: everything about calls is held back
//! until the checkpoint that knows of them, so that no call is ever told of twice or lost.

use std::sync::Arc;
use std::time::Duration;

use haft_core::{Conversation, ItemKind, StoreError, StoredEvent, Usage};
use haft_engine::{EventKind, Session};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::app::{App, Caller, store_failed};
use crate::error::{ApiError, ErrorCode, without_content};
use crate::live::{LiveRun, stored_event};
use crate::stream::{Finished, Snapshot, WireEvent};
use crate::watch::RunTrace;
use crate::wire::cut_secrets;

/// How often a store that has too much to write is asked again.
const BUSY_TRIES: u32 = 20;

/// The pause between two of these times.
const BUSY_PAUSE: Duration = Duration::from_millis(250);

/// What is noted down of a response that is being worked on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    version: u32,
    pub(crate) request: Asked,
    /// How far its run has come; none before it began.
    pub(crate) run: Option<RunSoFar>,
}

/// The form of this record.
const VERSION: u32 = 1;

/// The request, to be planned again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// Its body, without the items of its input: those are stored with the response.
    pub(crate) body: Arc<Map<String, Value>>,
    pub(crate) request_id: String,
    pub(crate) wants_vendor_events: bool,
}

/// How far a run has come.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunSoFar {
    /// So many items in front of the session's are those of the planned conversation.
    pub(crate) planned_items: usize,
    pub(crate) session: Session,
    pub(crate) told: Snapshot,
    /// What was used before this run of the engine began.
    pub(crate) used_before: Usage,
    /// How it went by then.
    #[serde(default)]
    pub(crate) trace: Option<RunTrace>,
}

impl Asked {
    /// What is to be noted down of a request.
    pub(crate) fn new(mut body: Map<String, Value>, caller: &Caller) -> Self {
        let asks_to_compact = body
            .get("input")
            .and_then(Value::as_array)
            .and_then(|items| items.last())
            .filter(|item| item["type"] == COMPACTION_TRIGGER)
            .cloned();
        match asks_to_compact {
            Some(trigger) => body.insert("input".to_owned(), Value::Array(vec![trigger])),
            None => body.remove("input"),
        };
        if let Some(tools) = body.get_mut("tools") {
            // Secrets are not stored.
            cut_secrets(tools);
        }
        Self {
            body: Arc::new(body),
            request_id: caller.request_id.clone(),
            wants_vendor_events: caller.wants_vendor_events,
        }
    }

    /// The body with these items as its input.
    pub(crate) fn body_with(&self, items: impl Iterator<Item = Value>) -> Value {
        let mut body = Map::clone(&self.body);
        let trigger = body.remove("input");
        let trigger = trigger.and_then(|input| input.as_array().cloned());
        let input = items.chain(trigger.into_iter().flatten());
        body.insert("input".to_owned(), input.collect());
        Value::Object(body)
    }
}

const COMPACTION_TRIGGER: &str = "compaction_trigger";

impl Checkpoint {
    pub(crate) fn new(request: Asked, run: Option<RunSoFar>) -> Self {
        Self {
            version: VERSION,
            request,
            run,
        }
    }

    pub(crate) fn to_json(&self) -> Result<Box<RawValue>, ApiError> {
        to_raw_value(self).map_err(|error| {
            tracing::error!(%error, "a checkpoint cannot be written");
            ApiError::new(ErrorCode::ServerError, "a checkpoint cannot be written")
        })
    }

    /// One that was stored; none if it is damaged or of another version.
    pub(crate) fn read(json: &RawValue) -> Option<Self> {
        let read = serde_json::from_str::<Self>(json.get());
        let read = read.inspect_err(|error| {
            let error = without_content(error);
            tracing::warn!(error, "a checkpoint cannot be read");
        });
        read.ok().filter(|checkpoint| checkpoint.version == VERSION)
    }
}

/// A background run, with what is needed to note it down.
pub(crate) struct Durable {
    pub(crate) live: Arc<LiveRun>,
    request: Asked,
    /// What is told together with the next checkpoint.
    held: Vec<WireEvent>,
    is_holding: bool,
}

impl Durable {
    pub(crate) fn new(live: Arc<LiveRun>, request: Asked) -> Self {
        Self {
            live,
            request,
            held: Vec::new(),
            is_holding: false,
        }
    }

    /// Looks at an event of the run, before what follows from it is told.
    pub(crate) fn foresee(&mut self, event: &EventKind) {
        let is_about_calls = matches!(
            event,
            EventKind::ItemStarted {
                item: ItemKind::FunctionCall { .. },
                ..
            } | EventKind::ToolCallsRequested { .. }
                | EventKind::ApprovalRequested { .. }
                | EventKind::ToolsFound { .. }
                | EventKind::ToolInvoked { .. }
        );
        self.is_holding |= is_about_calls;
    }

    /// Everything from here on is told together with the next checkpoint.
    pub(crate) fn hold(&mut self) {
        self.is_holding = true;
    }

    pub(crate) fn tell(&mut self, events: Vec<WireEvent>) {
        if self.is_holding {
            self.held.extend(events);
        } else {
            self.live.add(events);
        }
    }

    /// The end of a response with everything that was held back, so that all of it is written in one
    /// step, behind what was told before.
    pub(crate) async fn gather(&mut self, mut finished: Finished) -> Finished {
        let mut events = self.take_held();
        events.append(&mut finished.events);
        finished.events = events;
        self.live.flushed().await;
        finished
    }

    /// What was held back.
    fn take_held(&mut self) -> Vec<WireEvent> {
        self.is_holding = false;
        std::mem::take(&mut self.held)
    }

    /// Notes down how far the run has come, then tells what was held back.
    pub(crate) async fn note(&mut self, app: &App, run: RunSoFar) -> Result<(), ApiError> {
        let checkpoint = Checkpoint::new(self.request.clone(), Some(run)).to_json()?;
        let events = self.take_held();
        let stored = self.stored(&events);
        // What was told before stands in front.
        self.live.flushed().await;
        let mut tries = 1;
        loop {
            let (owner, id) = (&self.live.owner, &self.live.id);
            let put = app
                .store
                .put_checkpoint(owner, id, checkpoint.clone(), stored.clone());
            match put.await {
                Ok(true) => break,
                Ok(false) => {
                    // It was deleted: nobody wants it any more.
                    self.live.cancel();
                    break;
                }
                Err(StoreError::Busy) if tries < BUSY_TRIES => {
                    tries += 1;
                    tokio::time::sleep(BUSY_PAUSE).await;
                }
                Err(error) => return Err(store_failed(error)),
            }
        }
        self.live.add_written(events);
        Ok(())
    }

    /// The run is over; its last events are written down, or still to be.
    pub(crate) async fn end(&self, events: Vec<WireEvent>, are_written: bool) {
        if are_written {
            self.live.add_written(events);
        } else {
            self.live.add(events);
        }
        self.live.end().await;
    }

    /// Events as they are stored; none where none are kept.
    pub(crate) fn stored(&self, events: &[WireEvent]) -> Vec<StoredEvent> {
        if !self.live.has_log {
            return Vec::new();
        }
        events.iter().filter_map(stored_event).collect()
    }
}

/// How many items of a run's conversation are those of the planned one: all, or none where it began
/// with another.
pub(crate) fn items_in_common(planned: &Conversation, begun: &Conversation) -> usize {
    let is_same = planned.len() == begun.len()
        && planned
            .entries()
            .iter()
            .zip(begun.entries())
            .all(|(planned, begun)| Arc::ptr_eq(planned, begun));
    if is_same { planned.len() } else { 0 }
}

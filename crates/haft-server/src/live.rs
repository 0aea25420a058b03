//! Responses that run in the background, and those who follow them.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use haft_core::{Cancel, Owner, Store, StoreError, StoredEvent, StoredItem};
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::orphans::finished_item;
use crate::stream::WireEvent;

/// How long events wait behind others that were just written down, so that many are written at once.
const WRITE_PAUSE: Duration = Duration::from_millis(10);

/// How much of a run's events one follower holds at once.
const PAGE_BYTES: usize = 256 * 1024;

/// How often a store that has too much to write is asked to take the same events.
const BUSY_TRIES: u32 = 50;

/// The pause between two of these times.
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// The responses that run in the background of this process.
#[derive(Default)]
pub(crate) struct LiveRuns(Mutex<HashMap<(Owner, String), Arc<LiveRun>>>);

impl LiveRuns {
    pub(crate) fn insert(&self, live: Arc<LiveRun>) {
        let key = (live.owner.clone(), live.id.clone());
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key, live);
    }

    pub(crate) fn get(&self, owner: &Owner, id: &str) -> Option<Arc<LiveRun>> {
        let runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.get(&(owner.clone(), id.to_owned())).cloned()
    }

    pub(crate) fn remove(&self, owner: &Owner, id: &str) {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.remove(&(owner.clone(), id.to_owned()));
    }
}

/// One of them, with its events so far.
///
/// Followers hear only of what is written down: whoever has heard of an event finds it again, also
/// after the process was killed.
pub(crate) struct LiveRun {
    pub(crate) owner: Owner,
    pub(crate) id: String,
    cancel: Cancel,
    /// Whether somebody wanted it to stop; otherwise the server did.
    is_unwanted: AtomicBool,
    /// Whether its events are kept.
    pub(crate) has_log: bool,
    events: Mutex<Vec<WireEvent>>,
    state: watch::Sender<LiveState>,
}

/// How far a live run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LiveState {
    /// How many events there are.
    events: usize,
    /// How many of them are written down: those are shown.
    pub(crate) shown: usize,
    pub(crate) is_over: bool,
}

impl LiveRun {
    /// A run with these events behind it, all written down.
    pub(crate) fn new(
        owner: Owner,
        id: String,
        cancel: Cancel,
        has_log: bool,
        events: Vec<WireEvent>,
    ) -> Arc<Self> {
        let state = LiveState {
            events: events.len(),
            shown: events.len(),
            is_over: false,
        };
        Arc::new(Self {
            owner,
            id,
            cancel,
            is_unwanted: AtomicBool::new(false),
            has_log,
            events: Mutex::new(events),
            state: watch::Sender::new(state),
        })
    }

    /// Stops it because somebody wants it to stop.
    pub(crate) fn cancel(&self) {
        self.is_unwanted.store(true, Ordering::Release);
        self.cancel.cancel();
    }

    pub(crate) fn is_unwanted(&self) -> bool {
        self.is_unwanted.load(Ordering::Acquire)
    }

    /// Adds events that are still to be written down.
    pub(crate) fn add(&self, more: Vec<WireEvent>) {
        if self.has_log && !more.is_empty() {
            let count = self.push(more);
            self.state.send_modify(|state| state.events = count);
        }
    }

    /// Adds events that are written down, behind those that are.
    pub(crate) fn add_written(&self, more: Vec<WireEvent>) {
        if self.has_log && !more.is_empty() {
            let count = self.push(more);
            self.state.send_modify(|state| {
                state.events = count;
                state.shown = count;
            });
        }
    }

    /// The number of the next event; none where events are not kept.
    pub(crate) fn next_number(&self) -> Option<u64> {
        let count = self.state.borrow().events;
        self.has_log.then_some(count as u64)
    }

    fn push(&self, more: Vec<WireEvent>) -> usize {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.extend(more);
        events.len()
    }

    /// Waits until everything so far is written down.
    pub(crate) async fn flushed(&self) {
        // The sender lives as long as this.
        let _ = self
            .watch()
            .wait_for(|state| state.shown >= state.events)
            .await;
    }

    /// The run is over, here at least.
    pub(crate) async fn end(&self) {
        self.flushed().await;
        self.state.send_modify(|state| state.is_over = true);
    }

    /// Events from a place on, up to another.
    pub(crate) fn between(&self, start: usize, end: usize) -> Vec<WireEvent> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.get(start..end).unwrap_or_default().to_vec()
    }

    /// Some events from a place on, not behind another: as many as one follower may hold at once. One
    /// who does not read keeps the others' memory free.
    pub(crate) fn page(&self, start: usize, end: usize) -> Vec<WireEvent> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = 0;
        let page = events.get(start..end).unwrap_or_default().iter();
        page.take_while(|event| {
            let is_first = bytes == 0;
            bytes += event.json.len();
            is_first || bytes <= PAGE_BYTES
        })
        .cloned()
        .collect()
    }

    /// The items that are done, by their places; none where events are not kept.
    pub(crate) fn finished_items(&self) -> Vec<StoredItem> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let done = events.iter().filter_map(|event| finished_item(&event.json));
        let items: BTreeMap<_, _> = done.collect();
        items.into_values().collect()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<LiveState> {
        self.state.subscribe()
    }

    /// Waits until it is over and everything of it is written down.
    pub(crate) async fn over(&self) {
        // It is never dropped while somebody holds it.
        let _ = self.watch().wait_for(|state| state.is_over).await;
    }

    /// Writes the events down as they come, until the run is over.
    pub(crate) async fn write_events(self: Arc<Self>, store: Arc<dyn Store>) {
        let mut watch = self.watch();
        let mut tries = 1;
        loop {
            let state = *watch.borrow_and_update();
            if state.events > state.shown {
                let events = self.between(state.shown, state.events);
                let stored = events.iter().filter_map(stored_event).collect();
                match store.append_events(&self.owner, &self.id, stored).await {
                    // A log without holes is worth some seconds of waiting.
                    Err(StoreError::Busy) if tries < BUSY_TRIES => {
                        tries += 1;
                        tokio::time::sleep(BUSY_PAUSE).await;
                        continue;
                    }
                    Err(error) => {
                        tracing::error!(%error, id = self.id, "events cannot be stored");
                    }
                    Ok(()) => {}
                }
                tries = 1;
                let written = state.events;
                self.state.send_modify(|state| state.shown = written);
                // Many are written at once; whoever waits for the last ones does not wait for this.
                let all = |state: &LiveState| state.is_over;
                let _ = tokio::time::timeout(WRITE_PAUSE, watch.wait_for(all)).await;
                continue;
            }
            if state.is_over || watch.changed().await.is_err() {
                return;
            }
        }
    }
}

pub(crate) fn stored_event(event: &WireEvent) -> Option<StoredEvent> {
    Some(StoredEvent {
        sequence_number: event.sequence_number,
        json: RawValue::from_string(event.json.to_string()).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u64, size: usize) -> WireEvent {
        WireEvent {
            sequence_number: number,
            kind: "x".into(),
            json: "a".repeat(size).into(),
        }
    }

    #[test]
    fn a_follower_holds_only_some_of_a_long_run_at_once() {
        let live = LiveRun::new(
            Owner::default(),
            "resp_1".into(),
            Cancel::new(),
            true,
            Vec::new(),
        );
        let large = PAGE_BYTES / 2;
        live.add(vec![event(0, large), event(1, large), event(2, large)]);
        live.add(vec![event(3, 10 * PAGE_BYTES), event(4, 1)]);
        let numbers = |start, end| -> Vec<u64> {
            let page = live.page(start, end);
            page.iter().map(|event| event.sequence_number).collect()
        };
        assert_eq!(numbers(0, 5), [0, 1]);
        assert_eq!(numbers(2, 5), [2]);
        assert_eq!(numbers(3, 5), [3], "one that is too large comes alone");
        assert_eq!(numbers(4, 5), [4]);
        assert_eq!(numbers(0, 1), [0]);
        assert!(numbers(5, 5).is_empty());
        assert!(numbers(usize::MAX, 5).is_empty());
    }
}

//! Responses that run in the background, and those who follow them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use haft_core::{Cancel, Owner, Store, StoreError, StoredEvent, StoredItem};
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::orphans::finished_item;
use crate::stream::WireEvent;

/// How long events wait before they are written down, so that many are written at once.
const WRITE_PAUSE: Duration = Duration::from_millis(100);

/// How much of a run's events one follower holds at once.
const PAGE_BYTES: usize = 256 * 1024;

/// How often a store that has too much to write is asked to take the same events.
const BUSY_TRIES: u32 = 50;

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

    pub(crate) fn cancel_all(&self) {
        let runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.values().for_each(|run| run.cancel.cancel());
    }
}

/// One of them, with its events so far.
pub(crate) struct LiveRun {
    pub(crate) owner: Owner,
    pub(crate) id: String,
    pub(crate) cancel: Cancel,
    /// Whether its events are kept.
    pub(crate) has_log: bool,
    events: Mutex<Vec<WireEvent>>,
    state: watch::Sender<LiveState>,
    written: watch::Sender<usize>,
}

/// How far a live run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LiveState {
    /// How many events there are.
    events: usize,
    /// How many of them followers may hear.
    pub(crate) shown: usize,
    /// Nothing is added any more.
    is_ending: bool,
    pub(crate) is_over: bool,
}

impl LiveRun {
    pub(crate) fn new(owner: Owner, id: String, cancel: Cancel, has_log: bool) -> Arc<Self> {
        Arc::new(Self {
            owner,
            id,
            cancel,
            has_log,
            events: Mutex::default(),
            state: watch::Sender::new(LiveState::default()),
            written: watch::Sender::new(0),
        })
    }

    /// Adds events; followers hear of them.
    pub(crate) fn add(&self, more: Vec<WireEvent>) {
        if !self.has_log {
            return;
        }
        let count = self.push(more);
        self.state.send_modify(|state| {
            state.events = count;
            state.shown = count;
        });
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

    /// The run is over. Its last events are written down before anybody hears of them, so that
    /// whoever has heard of the end finds it again.
    pub(crate) async fn end(&self, last: Vec<WireEvent>) {
        let mut count = 0;
        if self.has_log {
            count = self.push(last);
            self.state.send_modify(|state| {
                state.events = count;
                state.is_ending = true;
            });
            let mut written = self.written.subscribe();
            // The writer goes away only when it has written everything, or cannot.
            let _ = written.wait_for(|written| *written >= count).await;
        }
        self.state.send_modify(|state| {
            state.shown = count;
            state.is_over = true;
        });
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

    /// Waits until it is over.
    pub(crate) async fn over(&self) {
        // It is never dropped while somebody holds it.
        let _ = self.watch().wait_for(|state| state.is_over).await;
    }

    /// Waits until it is over and everything of it is written down.
    pub(crate) async fn settled(&self) {
        // The sender lives as long as this.
        let _ = self
            .written
            .subscribe()
            .wait_for(|written| *written == usize::MAX)
            .await;
    }

    /// Writes the events down as they come, until the run is over.
    pub(crate) async fn write_events(self: Arc<Self>, store: Arc<dyn Store>) {
        let mut watch = self.watch();
        let mut done = 0;
        let mut tries = 1;
        loop {
            let state = *watch.borrow_and_update();
            if state.events > done {
                let events = self.between(done, state.events);
                let count = events.len();
                let stored = events.iter().filter_map(stored_event).collect();
                match store.append_events(&self.owner, &self.id, stored).await {
                    // A log without holes is worth some seconds of waiting.
                    Err(StoreError::Busy) if tries < BUSY_TRIES => {
                        tries += 1;
                        tokio::time::sleep(WRITE_PAUSE).await;
                        continue;
                    }
                    Err(error) => {
                        tracing::error!(%error, id = self.id, "events cannot be stored");
                    }
                    Ok(()) => {}
                }
                tries = 1;
                done += count;
                self.written.send_replace(done);
                continue;
            }
            if state.is_over || watch.changed().await.is_err() {
                self.written.send_replace(usize::MAX);
                return;
            }
            let is_ending = |state: &LiveState| state.is_ending || state.is_over;
            if !is_ending(&watch.borrow()) {
                // Many are written at once, the last ones without delay.
                let _ = tokio::time::timeout(WRITE_PAUSE, watch.wait_for(is_ending)).await;
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
        let live = LiveRun::new(Owner::default(), "resp_1".into(), Cancel::new(), true);
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

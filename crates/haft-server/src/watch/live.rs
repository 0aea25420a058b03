//! The records of runs that go on in the background, for whoever asks how far they are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use haft_core::Owner;

use super::record::RunTrace;

type Key = (Owner, String);

#[derive(Default)]
pub(super) struct LiveTraces(Mutex<HashMap<Key, Arc<Mutex<RunTrace>>>>);

impl LiveTraces {
    pub(super) fn insert(&self, key: Key, trace: Arc<Mutex<RunTrace>>) {
        let mut traces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        traces.insert(key, trace);
    }

    pub(super) fn remove(&self, key: &Key) {
        let mut traces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        traces.remove(key);
    }

    /// What is known of a run by now.
    pub(super) fn get(&self, owner: &Owner, id: &str) -> Option<RunTrace> {
        let key = (owner.clone(), id.to_owned());
        let trace = {
            let traces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            traces.get(&key).cloned()?
        };
        let trace = trace.lock().unwrap_or_else(PoisonError::into_inner);
        Some(trace.clone())
    }
}

//! Calls that wait for an answer while no request of their client is open.
//!
//! A modern client is asked by the result of its request; until it comes back, the call that asked has
//! nobody to talk to. It waits here, under an id that only the client's sealed state knows, for as long
//! as all rounds of one request may take.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::caller::Caller;
use super::context::AskError;
use super::input::{Answer, InputRequest};
use super::job::Job;
use super::state::random;

/// How many may wait in all, and of one caller.
const MAX: usize = 256;
const MAX_OF_CALLER: usize = 32;

/// A call that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) caller: Caller,
    pub(super) job: Job,
    pub(super) request: InputRequest,
    pub(super) reply: oneshot::Sender<Result<Answer, AskError>>,
}

#[derive(Debug, Default)]
pub(super) struct Parked(Mutex<HashMap<String, (Waiting, AbortHandle)>>);

impl Parked {
    /// Keeps the call for so long. If there is no room it comes back.
    pub(super) fn put(
        self: &Arc<Self>,
        waiting: Waiting,
        left: Duration,
    ) -> Result<String, Box<Waiting>> {
        let mut calls = self.lock();
        let of_caller = calls.values().filter(|(it, _)| it.caller == waiting.caller);
        if calls.len() >= MAX || of_caller.count() >= MAX_OF_CALLER {
            return Err(Box::new(waiting));
        }
        let Some(id) = new_id() else {
            return Err(Box::new(waiting));
        };
        let (parked, its_id) = (Arc::downgrade(self), id.clone());
        let expiry = tokio::spawn(async move {
            tokio::time::sleep(left).await;
            if let Some(parked) = parked.upgrade() {
                let gone = parked.lock().remove(&its_id);
                drop(gone);
            }
        });
        calls.insert(id.clone(), (waiting, expiry.abort_handle()));
        Ok(id)
    }

    /// Takes the call out; nobody else can then.
    pub(super) fn take(&self, id: &str, caller: &Caller) -> Option<Waiting> {
        let mut calls = self.lock();
        if calls.get(id)?.0.caller != *caller {
            return None;
        }
        let (waiting, expiry) = calls.remove(id)?;
        expiry.abort();
        Some(waiting)
    }

    /// Ends all that wait.
    pub(super) fn clear(&self) {
        let calls = std::mem::take(&mut *self.lock());
        for (_, expiry) in calls.values() {
            expiry.abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Waiting, AbortHandle)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn new_id() -> Option<String> {
    let bytes = random::<16>()?;
    Some(bytes.iter().fold(String::new(), |mut id, byte| {
        let _ = write!(id, "{byte:02x}");
        id
    }))
}

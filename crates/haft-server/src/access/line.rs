//! The line: so many runs go on at the same time, some more wait for their turn, the rest is refused.
//!
//! Nobody waits longer than the operator says, and whoever goes away leaves the line. It is fair
//! between tenants: a slot that becomes free goes to the one of those who wait that has the fewest runs
//! under way, or had its last turn longest ago, and where the line is full, whoever has most in it gives up his last place to one who has
//! less. So one tenant can neither keep the others from the slots that become free, nor from waiting.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haft_core::Owner;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::meter::{Running, spoken};
use crate::error::{ApiError, ErrorCode};

/// When somebody is told to come back for whom there is no room.
const COME_BACK: Duration = Duration::from_secs(1);

/// The runs of the server, and those that wait.
pub(crate) struct RunLine {
    most: usize,
    max_waiting: usize,
    max_wait: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: usize,
    waiting: usize,
    /// Those who have something under way or waiting.
    tenants: HashMap<Owner, Tenant>,
    /// Grows with every place and every turn.
    counter: u64,
}

#[derive(Default)]
struct Tenant {
    running: usize,
    waiting: VecDeque<Waiting>,
    /// When it had its last turn.
    served: u64,
}

struct Waiting {
    number: u64,
    /// A slot; dropped if there will be none.
    turn: oneshot::Sender<Slot>,
}

/// What somebody gets who asks.
enum Asked {
    Slot(Slot),
    Place(Place),
    Full,
}

impl RunLine {
    pub(crate) fn new(most: usize, max_waiting: usize, max_wait: Duration) -> Arc<Self> {
        Arc::new(Self {
            most,
            max_waiting,
            max_wait,
            state: Mutex::default(),
        })
    }

    /// Waits for a slot, no longer than one may.
    pub(super) async fn enter(self: &Arc<Self>, owner: &Owner) -> Result<Slot, ApiError> {
        let mut place = match self.ask(owner) {
            Asked::Slot(slot) => return Ok(slot),
            Asked::Place(place) => place,
            Asked::Full => return Err(overloaded()),
        };
        match timeout(self.max_wait, &mut place.turn).await {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) | Err(_) => Err(overloaded()),
        }
    }

    /// Whether somebody waits for his turn.
    pub(crate) fn is_crowded(&self) -> bool {
        self.state().waiting > 0
    }

    fn ask(self: &Arc<Self>, owner: &Owner) -> Asked {
        let mut state = self.state();
        if state.running < self.most && state.waiting == 0 {
            state.begin(owner);
            drop(state);
            return Asked::Slot(self.slot(owner));
        }
        let mut displaced = None;
        if state.waiting >= self.max_waiting {
            displaced = state.displace_for(owner);
            if displaced.is_none() {
                return Asked::Full;
            }
        }
        let (turn, slot) = oneshot::channel();
        state.counter += 1;
        state.waiting += 1;
        let number = state.counter;
        let waiting = Waiting { number, turn };
        state.tenant(owner).waiting.push_back(waiting);
        drop(state);
        // Who waits for it hears of it here, when nothing is locked any more.
        drop(displaced);
        Asked::Place(Place {
            line: Arc::clone(self),
            owner: owner.clone(),
            number,
            turn: slot,
        })
    }

    /// A slot is free: it goes to the next one.
    fn release(self: &Arc<Self>, owner: &Owner) {
        let mut free_of = owner.clone();
        loop {
            let next = {
                let mut state = self.state();
                state.leave(&free_of);
                state.next()
            };
            let Some((owner, turn)) = next else { return };
            // Whoever went away in this very moment gives it on.
            match turn.send(self.slot(&owner)) {
                Ok(()) => return,
                Err(slot) => slot.forget(),
            }
            free_of = owner;
        }
    }

    fn slot(self: &Arc<Self>, owner: &Owner) -> Slot {
        Slot {
            line: Some(Arc::clone(self)),
            owner: owner.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is half-changed if somebody panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tenant(&mut self, owner: &Owner) -> &mut Tenant {
        self.tenants.entry(owner.clone()).or_default()
    }

    /// One run of a tenant more.
    fn begin(&mut self, owner: &Owner) {
        self.running += 1;
        self.counter += 1;
        let turn = self.counter;
        let tenant = self.tenant(owner);
        tenant.running += 1;
        tenant.served = turn;
    }

    /// One run of a tenant less.
    fn leave(&mut self, owner: &Owner) {
        self.running -= 1;
        self.tenant(owner).running -= 1;
        self.forget_if_idle(owner);
    }

    /// Whose turn it is, already counted as running.
    fn next(&mut self) -> Option<(Owner, oneshot::Sender<Slot>)> {
        let waiting = self.tenants.iter_mut();
        let waiting = waiting.filter(|(_, tenant)| !tenant.waiting.is_empty());
        let next = waiting.min_by_key(|(_, tenant)| {
            let first = tenant.waiting.front().map(|waiting| waiting.number);
            (tenant.running, tenant.served, first)
        });
        let (owner, tenant) = next?;
        let waiting = tenant.waiting.pop_front()?;
        let owner = owner.clone();
        self.waiting -= 1;
        self.begin(&owner);
        Some((owner, waiting.turn))
    }

    /// Takes the last place of whoever has most, if the newcomer has less all the same.
    fn displace_for(&mut self, newcomer: &Owner) -> Option<Waiting> {
        let own = self.tenants.get(newcomer);
        let own = own.map_or(0, |tenant| tenant.waiting.len());
        let tenants = self.tenants.values_mut();
        let longest = tenants.max_by_key(|tenant| tenant.waiting.len())?;
        if longest.waiting.len() <= own + 1 {
            return None;
        }
        self.waiting -= 1;
        longest.waiting.pop_back()
    }

    fn forget_if_idle(&mut self, owner: &Owner) {
        let is_idle = |tenant: &Tenant| tenant.running == 0 && tenant.waiting.is_empty();
        if self.tenants.get(owner).is_some_and(is_idle) {
            self.tenants.remove(owner);
        }
    }
}

/// A place in the line. Whoever drops it has gone away.
struct Place {
    line: Arc<RunLine>,
    owner: Owner,
    number: u64,
    turn: oneshot::Receiver<Slot>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.line.state();
        let Some(tenant) = state.tenants.get_mut(&self.owner) else {
            return;
        };
        let at = tenant
            .waiting
            .binary_search_by_key(&self.number, |it| it.number);
        if let Ok(at) = at {
            tenant.waiting.remove(at);
            state.waiting -= 1;
        }
        state.forget_if_idle(&self.owner);
    }
}

/// Room for one run, given on when it is dropped.
pub(super) struct Slot {
    line: Option<Arc<RunLine>>,
    owner: Owner,
}

impl Slot {
    /// Drops it without giving it on.
    fn forget(mut self) {
        self.line = None;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(line) = self.line.take() {
            line.release(&self.owner);
        }
    }
}

/// Room for one run, in the line and among those of its key.
pub(crate) struct RunPermit {
    pub(super) _slot: Slot,
    pub(super) _running: Running,
}

pub(crate) fn overloaded() -> ApiError {
    let message = format!(
        "the server is busy with other requests: try again in {}",
        spoken(COME_BACK)
    );
    ApiError::new(ErrorCode::ServerIsOverloaded, message).retry_after(COME_BACK)
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;

//! What goes with everything that happens for one caller: when it must stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use haft_core::Cancel;

use crate::vm::Stop;

/// How deep models may be called by tools that models called.
pub(super) const DEEPEST: usize = 16;

/// What goes with a fiber and all that it leads to.
#[derive(Clone)]
pub(super) struct Course {
    /// The signal of whoever waits for it.
    pub(super) cancel: Cancel,
    /// How many calls of models it is within.
    pub(super) depth: usize,
    budget: Option<Arc<Budget>>,
}

/// How much one call of a served tool may compute, with everything that it calls.
struct Budget {
    time: Duration,
    steps: Option<u64>,
    used_micros: AtomicU64,
    used_steps: AtomicU64,
}

impl Course {
    /// That of a program, which its machine's limits bound.
    pub(super) fn new(cancel: Cancel) -> Self {
        Self {
            cancel,
            depth: 0,
            budget: None,
        }
    }

    /// That of one call of a served tool.
    pub(super) fn bounded(cancel: Cancel, time: Duration, steps: Option<u64>) -> Self {
        Self {
            budget: Some(Arc::new(Budget {
                time,
                steps,
                used_micros: AtomicU64::new(0),
                used_steps: AtomicU64::new(0),
            })),
            ..Self::new(cancel)
        }
    }

    /// That of a tool which a model calls that was called on this one.
    pub(super) fn deeper(&self, cancel: Cancel) -> Self {
        Self {
            cancel,
            depth: self.depth + 1,
            budget: self.budget.clone(),
        }
    }

    /// Notes what a slice took.
    pub(super) fn spend(&self, time: Duration, steps: u64) {
        if let Some(budget) = &self.budget {
            let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            budget.used_micros.fetch_add(micros, Ordering::Relaxed);
            budget.used_steps.fetch_add(steps, Ordering::Relaxed);
        }
    }

    /// Why it must stop, if it must.
    pub(super) fn stop(&self) -> Option<Stop> {
        self.stop_with(Duration::ZERO, 0)
    }

    /// Why it must stop, if it must, with what a slice took that is not noted yet.
    pub(super) fn stop_with(&self, time: Duration, steps: u64) -> Option<Stop> {
        if self.cancel.is_cancelled() {
            return Some(Stop::Cancelled);
        }
        let budget = self.budget.as_ref()?;
        let used = Duration::from_micros(budget.used_micros.load(Ordering::Relaxed));
        let used_steps = budget.used_steps.load(Ordering::Relaxed);
        match budget.steps {
            Some(limit) if used_steps.saturating_add(steps) >= limit => Some(Stop::Steps(limit)),
            _ if used.saturating_add(time) >= budget.time => Some(Stop::Time(budget.time)),
            _ => None,
        }
    }
}

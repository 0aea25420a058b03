//! How much a program may use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Failure, Outcome, Stop};
use crate::value::Value;

/// How much a program may use (§6).
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Calls within each other.
    pub depth: usize,
    /// Steps, if they are limited.
    pub steps: Option<u64>,
    /// Memory in MiB.
    pub memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 10_000,
            steps: None,
            memory: 1024,
        }
    }
}

/// Stops a machine from outside.
#[derive(Debug, Clone, Default)]
pub struct Canceller(Arc<AtomicBool>);

impl Canceller {
    /// The machine stops at its next loop or call.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was told to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What was allocated since the last look at what is still held. Counting each release would cost
/// more than to look now and then.
#[derive(Debug)]
pub(crate) struct Heap {
    since: usize,
    threshold: usize,
    limit: usize,
}

impl Heap {
    pub(crate) fn new(mebibytes: usize) -> Self {
        let limit = mebibytes.saturating_mul(1 << 20);
        Self {
            since: 0,
            threshold: limit / 2,
            limit,
        }
    }

    /// Notes an allocation; one that alone is too much is refused before it is made.
    #[inline]
    pub(crate) fn charge(&mut self, bytes: usize) -> Outcome<()> {
        self.since = self.since.saturating_add(bytes);
        if bytes > self.limit {
            Err(self.exceeded())
        } else {
            Ok(())
        }
    }

    /// Whether something of this size may be made at all.
    #[inline]
    pub(crate) fn room(&self, bytes: usize) -> Outcome<()> {
        if bytes > self.limit {
            Err(self.exceeded())
        } else {
            Ok(())
        }
    }

    /// Notes what a new value holds.
    #[inline]
    pub(crate) fn note(&mut self, value: &Value) {
        let bytes = match value {
            Value::Text(text) => text.heap().map_or(0, |(_, size)| size),
            Value::Array(array) => 40 + 16 * array.items().len(),
            Value::Map(map) => 80 + 48 * map.capacity(),
            Value::Ok(_) | Value::Err(_) | Value::Some(_) => 32,
            _ => 0,
        };
        self.since = self.since.saturating_add(bytes);
    }

    /// Whether it is time to look.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.since > self.threshold
    }

    /// What is still held was measured.
    pub(crate) fn measured(&mut self, held: usize) -> Outcome<()> {
        if held > self.limit {
            return Err(self.exceeded());
        }
        self.since = 0;
        self.threshold = ((self.limit - held) / 2).max(self.limit / 64);
        Ok(())
    }

    fn exceeded(&self) -> Box<Failure> {
        Failure::stop(Stop::Memory(self.limit >> 20))
    }
}

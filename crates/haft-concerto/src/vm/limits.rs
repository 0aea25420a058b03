//! How much a program may use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    /// The machine stops at its next loop or call, or in the middle of an instruction that takes long.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was told to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

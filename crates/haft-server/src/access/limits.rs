//! What the operator bounds.

use std::time::Duration;

use super::key::KeyLimits;

/// What requests may bring, what each key may ask for, and how many may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// What every key may ask for that has no limits of its own. Where no key is needed, everybody
    /// together is one key.
    pub keys: KeyLimits,
    /// How many requests may wait for their turn when `max_runs` are under way; four times as many as
    /// those if nothing is said. More are refused.
    pub max_waiting: Option<usize>,
    /// How long they may wait.
    pub max_wait: Duration,
    /// How many bytes all requests together may make the server hold: request bodies that are being read or wait,
    /// unfinished WebSocket messages, answers that are being collected (four times their size, and one answer at
    /// most a quarter of the limit) and responses that are being written. The first 64 KiB of each do not count. The
    /// largest body always fits.
    pub max_pending_bytes: usize,
    /// How many bytes the headers of a request may have, the line with its path included.
    pub max_header_bytes: usize,
    /// How many headers it may have.
    pub max_headers: usize,
    /// How many items, or messages, it may bring.
    pub max_input_items: usize,
    /// How many tools it may declare.
    pub max_tools: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            keys: KeyLimits::default(),
            max_waiting: None,
            max_wait: Duration::from_secs(10),
            max_pending_bytes: 256 * 1024 * 1024,
            max_header_bytes: 64 * 1024,
            max_headers: 64,
            max_input_items: 10_000,
            max_tools: 1_024,
        }
    }
}

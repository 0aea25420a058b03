//! What became of calls, for whoever shows them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::error::McpError;
use crate::outcome::ToolOutcome;

/// What became of one call: more than a model is told.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CallRecord {
    /// The server answered, well or not.
    Answered(ToolOutcome),
    /// There was no answer.
    Failed(McpError),
}

/// The calls of one run, by their ids. Put into a run's context
/// ([`ToolContext::state`](haft_core::ToolContext::state)), it hears how each call of an
/// [`McpTool`](super::McpTool) ended, and forgets it once it was taken.
#[derive(Debug, Default)]
pub struct CallLog(Mutex<HashMap<String, CallRecord>>);

impl CallLog {
    /// Takes what became of a call out of the log.
    pub fn take(&self, call_id: &str) -> Option<CallRecord> {
        self.lock().remove(call_id)
    }

    pub(super) fn put(&self, call_id: &str, record: CallRecord) {
        self.lock().insert(call_id.to_owned(), record);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, CallRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

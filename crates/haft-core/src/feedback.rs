//! The seam to those who have something to say beside a tool's result, now and then.
//!
//! Only what they are and what they are shown is here; when their triggers fire is counted by the
//! engine. Feedback must never change a result.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// When a provider speaks. Its triggers are independent; one that fires is enough.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedbackTrigger {
    /// After every so many calls; 0 is never.
    EveryNCalls(u64),
    /// After a call, if so many seconds have passed since the last time; 0 is never.
    EveryNSeconds(u64),
    /// After the call after which this file is there and was not there at the beginning. Once.
    OnFileCreated(String),
}

/// A finished call, as a provider sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedbackMoment<'a> {
    /// The tool.
    pub tool_name: &'a str,
    /// The call.
    pub call_id: &'a str,
    /// Whether it succeeded.
    pub success: bool,
    /// How many calls have finished in this conversation, this one included.
    pub calls: u64,
    /// The time, since the epoch.
    pub now: Duration,
}

/// Somebody who has something to say now and then.
pub trait FeedbackProvider: Send + Sync + 'static {
    /// What it is called; its memory is kept under this name.
    fn name(&self) -> &str;

    /// When it speaks.
    fn triggers(&self) -> &[FeedbackTrigger];

    /// What it says, if anything.
    fn block(&self, moment: &FeedbackMoment<'_>) -> Option<String>;
}

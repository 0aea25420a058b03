//! The loop between a model and its tools.

mod detect;
mod loop_report;
mod retry;

pub use detect::{LoopDetection, LoopDetector};
pub use loop_report::{LoopAction, LoopKind, LoopReport};
pub use retry::{Backoff, FailedAttempt, RetryPolicy};

//! The loop between a model and its tools.

mod detect;
mod loop_report;
mod policies;
mod retry;

pub use detect::{LoopDetection, LoopDetector};
pub use loop_report::{LoopAction, LoopKind, LoopReport};
pub use policies::{
    FilesSeen, ReadBeforeWrite, SequentialDependency, SucceededTools, check_all, tell_all,
};
pub use retry::{Backoff, FailedAttempt, RetryPolicy};

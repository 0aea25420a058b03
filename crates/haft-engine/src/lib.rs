//! The loop between a model and its tools.

mod detect;
mod feedback;
mod loop_report;
mod policies;
mod retry;
mod spill;

pub use detect::{LoopDetection, LoopDetector};
pub use feedback::{
    Feedback, FeedbackMemory, FeedbackMoment, FeedbackProvider, FeedbackTrigger, Reminder,
    with_feedback,
};
pub use loop_report::{LoopAction, LoopKind, LoopReport};
pub use policies::{
    FilesSeen, ReadBeforeWrite, SequentialDependency, SucceededTools, check_all, tell_all,
};
pub use retry::{Backoff, FailedAttempt, RetryPolicy};
pub use spill::{SpillStore, recall_tool_result};

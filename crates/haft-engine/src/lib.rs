//! The loop between a model and its tools.
//!
//! What comes in: a model, a binding, a conversation and the host's limits. What goes out: one
//! ordered stream of [`RunEvent`]s and an [`Outcome`] with the true reason of its end.
//!
//! The loop itself is a [`Machine`] without I/O: it is told what happened and says what to do. It
//! checks every call before anything of it runs (hydration, loops, policies, approval, budget,
//! deadline), gives each exactly one result in call order, and keeps all it knows in a [`Session`]
//! that serialises between turns. The driver behind [`Run`] performs what the machine asks for, on
//! tokio. The same machine serves a host that drives it by itself, resumption in another process,
//! and simulation in tests.
//!
//! This crate must never know a wire protocol, a provider or a store; it sees models, approvers and
//! tools only through the traits of `haft-core`.

mod answer;
mod callbacks;
mod calls;
mod detect;
mod disclosure;
mod driver;
mod duration;
mod event;
mod executor;
mod feedback;
mod loop_report;
mod machine;
mod moment;
mod once;
mod one_shot;
mod options;
mod outcome;
mod policies;
mod progress_board;
mod retry;
mod run;
mod session;
mod spill;
mod texts;

pub use answer::OnMismatch;
pub use detect::{LoopDetection, LoopDetector, Nudge};
pub use disclosure::{
    HostError, ReadSectionResult, ToolFinder, VisibilityChange, is_held_back, search_tool_name,
    search_tools_definition, search_tools_described,
};
pub use driver::Step;
pub use event::{EventKind, RunContext, RunEvent};
pub use executor::{ExecutorCall, ToolExecutor};
pub use feedback::{Feedback, FeedbackMemory, Reminder, with_feedback};
pub use haft_core::{FeedbackMoment, FeedbackProvider, FeedbackTrigger};
pub use loop_report::{LoopAction, LoopKind, LoopReport};
pub use machine::{
    Effect, Executed, Input, Machine, ResumeError, Runner, Ticket, VisibilityExpansionRequired,
};
pub use moment::Moment;
pub use once::{Asked, ask_once, may_ask_once};
pub use one_shot::{ToolCallReply, execute, execute_bound, execute_in, tool_call};
pub use options::LoopOptions;
pub use outcome::{
    CallRecord, CallStatus, Counters, End, EndSummary, FailedReason, IncompleteReason, Outcome,
    PendingCall, RunPhase, ToolResult, Waiting,
};
pub use policies::{
    FilesSeen, ReadBeforeWrite, SequentialDependency, SucceededTools, check_all, tell_all,
};
pub use retry::{Backoff, FailedAttempt, RetryPolicy};
pub use run::{Run, RunError, RunStream, run};
pub use session::Session;
pub use spill::{SpillStore, recall_tool_result};

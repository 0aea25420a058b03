//! The machine: runs loaded programs, step by step, without recursion and without I/O of its own.
//!
//! A [`Machine`] is what a program shares: its constants, stores, mocks and permissions. A [`Fiber`] is
//! one course of execution: its calls and registers. Whatever only the host can do, such as asking a
//! model, is an [`Effect`]: the fiber stops with it and goes on when the host resumes it with a value.
//! While a program waits for a model, the host may run tools of the same program in fibers of their own.

mod calls;
mod continuation;
mod effect;
mod execute;
mod failure;
mod fiber;
mod iter;
mod legacy;
pub(crate) mod limits;
mod machine;
mod meter;
mod operand;
mod operate;
mod pipeline;
mod place;
mod unwind;

pub use effect::{Effect, HttpRequest, ListenCall, McpCall, ModelCall};
pub use failure::{Failure, Fault, FaultKind, Outcome, Stop};
pub use fiber::{Fiber, Step};
pub use iter::Iter;
pub use legacy::Legacy;
pub use limits::{Canceller, Limits};
pub use machine::{Machine, Output, StartError};

pub(crate) use continuation::{Continuation, Each, Next, Reply};
pub(crate) use meter::{Meter, Watch};
pub(crate) use pipeline::PipelineRun;

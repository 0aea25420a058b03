//! From a provider's answer to model events.
//!
//! What comes in: frames of one answer, in order. What goes out: [`ModelEvent`]s as they are
//! documented: every item is begun and done, `Finished` comes once and last. An answer that breaks
//! off is an error, never a normal end.

mod anthropic;
#[cfg(test)]
mod invariants;
mod responses;
mod restoring;
mod stream;

pub(crate) use anthropic::AnthropicLift;
pub(crate) use responses::ResponsesLift;
pub(crate) use restoring::{Restoring, restored};
pub(crate) use stream::{Flow, Lift, lifted};

use std::collections::VecDeque;

use haft_core::ModelEvent;

/// Where a lifter puts its events.
pub(crate) type Events = VecDeque<ModelEvent>;

//! From run events to the events of the API (`open-responses.md` §3).
//!
//! What comes in: the ordered events of one run. What goes out: the ordered events of one response,
//! numbered by one writer, and the items of its output. Nothing here waits, stores or sends, so the
//! order of everything follows from the order of the run's events alone.

mod answer;
mod behind;
mod dialect;
mod ending;
mod entry;
mod event;
mod frame;
mod hosted;
mod items;
mod output;
mod searching;
mod snapshot;
mod translation;
mod translator;
mod unseen;

#[cfg(test)]
mod legal;
#[cfg(test)]
mod tests;

pub(crate) use dialect::Dialect;
pub(crate) use ending::Finished;
pub(crate) use event::WireEvent;
pub(crate) use frame::{DONE_FRAME, KEEP_ALIVE_FRAME, sse_frame};
pub(crate) use items::{HostedCall, HostedEnd, OutputItem, Shown};
pub(crate) use snapshot::Snapshot;
pub(crate) use translation::Translation;
pub(crate) use translator::Translator;

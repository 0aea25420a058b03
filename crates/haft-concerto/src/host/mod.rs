//! What a host needs to serve a running program, as pure functions: the mock provider and the reading
//! of answers that must have a schema. Performing effects is the host's own.

mod answer;
mod mock;
mod offline;

pub use answer::read_answer;
pub use mock::{MockReply, mock_reply};
pub use offline::{Offline, TestOutcome};

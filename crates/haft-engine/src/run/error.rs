//! Why a run could not start.

use haft_catalog::BindError;
use haft_core::{HistoryError, RestoreError, SchemaError, StateError};

use crate::machine::ResumeError;

/// Why a run could not start. Nothing was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The prompt cannot be rendered.
    #[error(transparent)]
    Prompt(#[from] haft_catalog::prompt::RenderError),
    /// The tools make no binding.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// Calls and outputs of the conversation do not belong together.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The answers are not those that the run waits for.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// The demanded form of the answer is not a usable schema.
    #[error("the form of the answer is not usable: {0}: correct the type's schema")]
    Answer(SchemaError),
    /// The deadline is over, or nearly.
    #[error("the deadline is less than a second ahead: give the run more time")]
    DeadlineTooClose,
    /// A limit of zero.
    #[error("`{name}` is 0: leave it out, or set at least 1")]
    ZeroLimit {
        /// Which.
        name: &'static str,
    },
    /// There is nothing to answer.
    #[error("the conversation is empty: add something with `user` or `input`")]
    NothingToAnswer,
    /// The session's state does not fit the slices that this run registers.
    #[error("the session's state cannot be used: {0}")]
    State(#[from] RestoreError),
    /// Two slices of session state want one name.
    #[error("the session's state cannot be set up: {0}")]
    Slices(#[from] StateError),
    /// Long results cannot be put away.
    #[error("the directory for long results cannot be made: {0}")]
    Spill(#[from] std::io::Error),
}

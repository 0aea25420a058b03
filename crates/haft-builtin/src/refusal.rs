//! Why a tool did not do what it was asked to.

use std::io;

use haft_core::{ToolError, ToolOutput};

/// A refusal or a failure, in words for the model.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The model reads exactly this.
    Told(String),
    /// The model reads that the tool failed, and this.
    Failed(String),
}

impl Refusal {
    pub(crate) fn outside(path: &str) -> Self {
        Self::Told(format!("Path '{path}' is outside the workspace."))
    }

    pub(crate) fn io(path: &str, error: &io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::NotFound => "does not exist".to_owned(),
            io::ErrorKind::PermissionDenied => "may not be accessed".to_owned(),
            io::ErrorKind::IsADirectory => "is a directory".to_owned(),
            io::ErrorKind::NotADirectory => "leads through something that is no directory".into(),
            _ => format!("cannot be used: {error}"),
        };
        Self::Failed(format!("'{path}' {reason}"))
    }
}

/// What a tool gives back for it.
pub(crate) fn output(outcome: Result<String, Refusal>) -> Result<ToolOutput, ToolError> {
    match outcome {
        Ok(text) => Ok(ToolOutput::text(text)),
        Err(Refusal::Told(text)) => Ok(ToolOutput::failure(text)),
        Err(Refusal::Failed(text)) => Err(ToolError::new(text)),
    }
}

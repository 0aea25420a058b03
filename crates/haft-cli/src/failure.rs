//! Why a command cannot do what it was told, and what to do about it.

use std::fmt;
use std::io;

/// What stands between them.
pub(crate) const HELP: &str = "\n  = help: ";

/// One reason, and a remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    message: String,
    remedy: Option<String>,
    is_mistake: bool,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            remedy: None,
            is_mistake: false,
        }
    }

    /// One that comes of what the command was told, as a wrong argument would be.
    pub(crate) fn mistake(message: impl Into<String>) -> Self {
        Self {
            is_mistake: true,
            ..Self::new(message)
        }
    }

    /// Whether it comes of what the command was told.
    pub(crate) fn is_mistake(&self) -> bool {
        self.is_mistake
    }

    /// Adds what to do.
    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// The listener's own address cannot be told.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "the signature that `map_err` asks for"
    )]
    pub(crate) fn of_listening(error: io::Error) -> Self {
        Self::new(format!(
            "the address that is listened on is not known: {error}"
        ))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.remedy {
            Some(remedy) => write!(f, "{HELP}{remedy}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

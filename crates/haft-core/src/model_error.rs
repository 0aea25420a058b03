//! What goes wrong between haft and a model.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What kind of failure it is; retries and front doors go by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// Too many requests.
    RateLimit,
    /// What was paid for is used up.
    QuotaExhausted,
    /// No answer in time.
    Timeout,
    /// The provider failed, or is overloaded.
    ServerError,
    /// The provider could not be reached, or hung up.
    Unreachable,
    /// The key is missing, wrong or not enough.
    Unauthorized,
    /// There is no such model or address.
    NotFound,
    /// The conversation does not fit into the model.
    ContextLength,
    /// The provider refuses the prompt by its policy.
    PromptRefused,
    /// The provider refuses the request.
    InvalidRequest,
    /// The provider could answer such a request if its operator set it up for it: a model server that
    /// was started without a parser for tool calls.
    Misconfigured,
    /// What came back is not what the protocol says.
    Protocol,
}

impl ModelErrorKind {
    /// Whether the same request may succeed a moment later.
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::RateLimit | Self::Timeout | Self::ServerError | Self::Unreachable
        )
    }
}

/// A failed request, with the provider's own words.
///
/// ```
/// use haft_core::{ModelError, ModelErrorKind};
/// let error = ModelError::new(ModelErrorKind::RateLimit, "slow down").with_status(429);
/// assert!(error.kind.is_retryable());
/// assert_eq!(error.to_string(), "the model's provider is limiting requests (HTTP 429): slow down");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}{}: {message}", kind.words(), in_brackets(*status))]
pub struct ModelError {
    /// What kind.
    pub kind: ModelErrorKind,
    /// What the provider says, or what happened to it. Never holds a key.
    pub message: String,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// The provider's own code, if it gives one.
    pub code: Option<String>,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
    /// For the log of the operator, not for clients: the URL that was asked, without secrets, and what to
    /// change in the configuration where that is known.
    #[serde(skip)]
    pub operator_note: Option<String>,
}

impl ModelError {
    /// A failure in these words.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            code: None,
            retry_after: None,
            operator_note: None,
        }
    }

    /// Sets what only the operator reads.
    #[must_use]
    pub fn with_operator_note(mut self, note: impl Into<String>) -> Self {
        self.operator_note = Some(note.into());
        self
    }

    /// Sets the HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Sets the provider's own code.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Sets how long the provider asks to wait.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }
}

impl ModelErrorKind {
    fn words(self) -> &'static str {
        match self {
            Self::RateLimit => "the model's provider is limiting requests",
            Self::QuotaExhausted => "the quota at the model's provider is used up",
            Self::Timeout => "the model did not answer in time",
            Self::ServerError => "the model's provider failed",
            Self::Unreachable => "the model's provider cannot be reached",
            Self::Unauthorized => "the model's provider refuses the key",
            Self::NotFound => "the model's provider knows no such model or address",
            Self::ContextLength => "the conversation is too long for the model",
            Self::PromptRefused => "the model's provider refuses the prompt",
            Self::InvalidRequest => "the model's provider refuses the request",
            Self::Misconfigured => "the model's provider is not set up for the request",
            Self::Protocol => "the model's provider broke the protocol",
        }
    }
}

fn in_brackets(status: Option<u16>) -> String {
    status.map_or_else(String::new, |status| format!(" (HTTP {status})"))
}

//! How failures of a run are told to clients (`open-responses.md` §6).

use std::time::Duration;

use haft_core::{ModelError, ModelErrorKind};
use haft_engine::FailedReason;

use crate::error::{ApiError, ErrorCode};

/// The error that a failed run gives.
pub(crate) fn of_run(reason: &FailedReason, message: &str) -> ApiError {
    match reason {
        FailedReason::Model { error, .. } => of_model(error, message),
        FailedReason::ToolChoiceNotFollowed => {
            ApiError::new(ErrorCode::ToolChoiceNotFollowed, message).at("tool_choice")
        }
        FailedReason::OutputInvalid => {
            ApiError::new(ErrorCode::ModelError, message).at("text.format")
        }
        _ => ApiError::new(ErrorCode::ModelError, message),
    }
}

/// The error that a model's failure gives, in these words.
pub(crate) fn of_model(error: &ModelError, message: &str) -> ApiError {
    let code = match error.kind {
        ModelErrorKind::RateLimit => ErrorCode::RateLimitExceeded,
        ModelErrorKind::QuotaExhausted => ErrorCode::InsufficientQuota,
        ModelErrorKind::Timeout => ErrorCode::BackendTimeout,
        ModelErrorKind::Unreachable => ErrorCode::BackendUnreachable,
        ModelErrorKind::ContextLength => ErrorCode::ContextLengthExceeded,
        ModelErrorKind::PromptRefused => ErrorCode::InvalidPrompt,
        ModelErrorKind::InvalidRequest if error.code.as_deref() == Some("unsupported_content") => {
            ErrorCode::UnsupportedContent
        }
        ModelErrorKind::InvalidRequest => ErrorCode::InvalidValue,
        ModelErrorKind::ServerError if matches!(error.status, Some(503 | 529)) => {
            ErrorCode::ServerIsOverloaded
        }
        // A refused key or an unknown model is between the operator and the provider.
        _ => ErrorCode::ModelError,
    };
    let mut message = message.to_owned();
    if code == ErrorCode::RateLimitExceeded {
        // Codex reads how long to wait from these words.
        let wait = error.retry_after.unwrap_or(Duration::from_secs(1));
        message = format!("{message}: try again in {:.1}s", wait.as_secs_f64());
    }
    let mut told = ApiError::new(code, message);
    told.retry_after = error.retry_after;
    if code == ErrorCode::ContextLengthExceeded {
        told = told.at("input");
    }
    told
}

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
            let error = ApiError::new(ErrorCode::ToolChoiceNotFollowed, message);
            error.at("tool_choice").final_for_client()
        }
        FailedReason::OutputInvalid => {
            let error = ApiError::new(ErrorCode::OutputInvalid, message);
            error.at("text.format").final_for_client()
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
    let mut message = match error.kind {
        // Where a backend is, or points to, is the operator's business; it is in the log.
        ModelErrorKind::Unreachable | ModelErrorKind::NotFound => without_addresses(message),
        _ => message.to_owned(),
    };
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

/// A text without the addresses in it.
fn without_addresses(text: &str) -> String {
    let mut told = String::new();
    let mut rest = text;
    while let Some(at) = ["http://", "https://"]
        .iter()
        .filter_map(|scheme| rest.find(scheme))
        .min()
    {
        told.push_str(&rest[..at]);
        let address = &rest[at..];
        let end = address.find(|it: char| it.is_whitespace() || "`\"'()<>,".contains(it));
        let (address, after) = address.split_at(end.unwrap_or(address.len()));
        rest = if address.ends_with(':') {
            // What follows says what happened there.
            after.trim_start()
        } else {
            told.push_str("another address");
            after
        };
    }
    told + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(kind: ModelErrorKind, words: &str) -> String {
        let error = ModelError::new(kind, words);
        of_model(&error, &error.to_string()).message
    }

    #[test]
    fn where_a_backend_is_is_not_told() {
        let words = "http://10.0.0.7:8080: error sending request: connection refused";
        assert_eq!(
            told(ModelErrorKind::Unreachable, words),
            "the model's provider cannot be reached: error sending request: connection refused"
        );
        let words = "it points to `https://sso.internal`: set the base address";
        let told_of_it = told(ModelErrorKind::NotFound, words);
        assert!(
            told_of_it.contains("it points to `another address`: set"),
            "{told_of_it}"
        );
        let words = "see https://provider.example/docs";
        let told_of_it = told(ModelErrorKind::RateLimit, words);
        assert!(
            told_of_it.contains(words),
            "a provider's own advice stays: {told_of_it}"
        );
    }
}

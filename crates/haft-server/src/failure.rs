//! How failures of a run are reported to clients.

use std::time::Duration;

use haft_core::{ModelError, ModelErrorKind};
use haft_engine::FailedReason;

use crate::error::{ApiError, ErrorCode};

/// The longest wait that SDKs keep to; after a longer one they try again at once.
const LONGEST_CLIENT_WAIT: Duration = Duration::from_mins(1);

/// The error that a failed run gives.
pub(crate) fn of_run(reason: &FailedReason, message: &str) -> ApiError {
    match reason {
        FailedReason::Model { error, attempts } => {
            let mut api_error = of_model(error, message);
            // This server has repeated the request: a client that does so as well multiplies them.
            api_error.must_not_retry |= *attempts > 1;
            api_error
        }
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
    let code = code_of(error);
    let mut message = match operator_matter(error, code) {
        Some(message) => message,
        // Where a backend is, is the operator's business; it is in the log.
        None if error.kind == ModelErrorKind::Unreachable => without_addresses(message),
        None => message.to_owned(),
    };
    if code == ErrorCode::RateLimitExceeded {
        // Codex reads how long to wait from these words.
        let wait = error.retry_after.unwrap_or(Duration::from_secs(1));
        message = format!("{message}: try again in {:.1}s", wait.as_secs_f64());
    }
    let mut api_error = ApiError::new(code, message);
    api_error.retry_after = error.retry_after;
    api_error.must_not_retry = is_final(error);
    match code {
        ErrorCode::ContextLengthExceeded => api_error = api_error.at("input"),
        ErrorCode::UnsupportedTool => api_error = api_error.at("tools"),
        _ => {}
    }
    api_error
}

fn code_of(error: &ModelError) -> ErrorCode {
    match error.kind {
        ModelErrorKind::RateLimit => ErrorCode::RateLimitExceeded,
        ModelErrorKind::QuotaExhausted => ErrorCode::InsufficientQuota,
        ModelErrorKind::Timeout => ErrorCode::BackendTimeout,
        ModelErrorKind::Unreachable => ErrorCode::BackendUnreachable,
        ModelErrorKind::ContextLength => ErrorCode::ContextLengthExceeded,
        ModelErrorKind::PromptRefused => ErrorCode::InvalidPrompt,
        ModelErrorKind::InvalidRequest if error.code.as_deref() == Some("unsupported_content") => {
            ErrorCode::UnsupportedContent
        }
        ModelErrorKind::InvalidRequest if error.code.as_deref() == Some("unsupported_tool") => {
            ErrorCode::UnsupportedTool
        }
        ModelErrorKind::InvalidRequest => ErrorCode::InvalidValue,
        ModelErrorKind::ServerError if matches!(error.status, Some(503 | 529)) => {
            ErrorCode::ServerIsOverloaded
        }
        // Not 401 or 403: the client's own key is accepted.
        ModelErrorKind::Unauthorized if error.status == Some(403) => {
            ErrorCode::BackendPermissionDenied
        }
        ModelErrorKind::Unauthorized => ErrorCode::BackendAuthenticationError,
        ModelErrorKind::NotFound if error.code.as_deref() == Some("model_not_found") => {
            ErrorCode::ModelNotFound
        }
        ModelErrorKind::NotFound => ErrorCode::BackendNotFound,
        ModelErrorKind::Misconfigured => ErrorCode::BackendMisconfigured,
        // A status that the protocol does not have.
        ModelErrorKind::Protocol if error.status.is_some() => ErrorCode::BackendMisconfigured,
        _ => ErrorCode::ModelError,
    }
}

/// What clients read of a failure that only the operator can do something about. The provider's own words are
/// left out: they may hold a part of a key, or name accounts and addresses.
fn operator_matter(error: &ModelError, code: ErrorCode) -> Option<String> {
    let what = match code {
        ErrorCode::BackendAuthenticationError => "rejects the credentials of this server",
        ErrorCode::BackendPermissionDenied => "denies access to this server",
        ErrorCode::BackendNotFound => "has no such API",
        ErrorCode::BackendMisconfigured => "is not set up for this request",
        ErrorCode::ModelNotFound => "does not have the model",
        _ => return None,
    };
    let status = error
        .status
        .map_or_else(String::new, |status| format!(" (HTTP {status})"));
    let reason = match code {
        // These words are haft's own.
        ErrorCode::BackendMisconfigured => format!(": {}", error.message),
        _ => String::new(),
    };
    Some(format!(
        "the model's backend {what}{status}{reason}; ask the operator of this server to look at its log"
    ))
}

/// Whether a failure is a matter of the operator, not of the client that sent the request.
pub(crate) fn is_operator_matter(error: &ModelError) -> bool {
    operator_matter(error, code_of(error)).is_some()
}

/// Whether a client that sends the same request again would get the same error.
pub(crate) fn is_final(error: &ModelError) -> bool {
    let is_too_late = error
        .retry_after
        .is_some_and(|wait| wait > LONGEST_CLIENT_WAIT);
    !error.kind.is_retryable() || is_too_late
}

/// The beginning of what the TLS library says about a certificate. The rest may name hosts.
const BAD_CERTIFICATE: &str = "invalid peer certificate";

/// A text without the addresses in it.
fn without_addresses(text: &str) -> String {
    let text = match text.find(BAD_CERTIFICATE) {
        Some(at) => &text[..at + BAD_CERTIFICATE.len()],
        None => text,
    };
    let mut cleaned = String::new();
    let mut rest = text;
    while let Some(at) = ["http://", "https://"]
        .iter()
        .filter_map(|scheme| rest.find(scheme))
        .min()
    {
        cleaned.push_str(&rest[..at]);
        let address = &rest[at..];
        let end = address.find(|it: char| it.is_whitespace() || "`\"'()<>,".contains(it));
        let (address, after) = address.split_at(end.unwrap_or(address.len()));
        rest = if address.ends_with(':') {
            // What follows says what happened there.
            after.trim_start()
        } else {
            cleaned.push_str("another address");
            after
        };
    }
    cleaned + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message_of(kind: ModelErrorKind, words: &str) -> String {
        let error = ModelError::new(kind, words);
        of_model(&error, &error.to_string()).message
    }

    #[test]
    fn where_a_backend_is_is_not_told() {
        let words = "http://10.0.0.7:8080: error sending request: connection refused";
        assert_eq!(
            message_of(ModelErrorKind::Unreachable, words),
            "the model's provider cannot be reached: error sending request: connection refused"
        );
        let words = "https://10.0.0.7: error sending request: invalid peer certificate: certificate not valid for \
                     name \"10.0.0.7\"; certificate is only valid for DnsName(\"gpu.internal\")";
        assert_eq!(
            message_of(ModelErrorKind::Unreachable, words),
            "the model's provider cannot be reached: error sending request: invalid peer certificate"
        );
        let words = "it points to `https://sso.internal`: set the base address";
        let message = message_of(ModelErrorKind::NotFound, words);
        assert!(!message.contains("sso"), "{message}");
        let words = "see https://provider.example/docs";
        let message = message_of(ModelErrorKind::RateLimit, words);
        assert!(
            message.contains(words),
            "a provider's own advice stays: {message}"
        );
    }
}

//! Errors as clients see them: one shape, one table (`open-responses.md` §6).

use std::time::Duration;

use axum::http::StatusCode;
use serde::Serialize;

/// How deep the parser of JSON goes.
const MAX_DEPTH: usize = 127;

/// What is wrong with stored JSON, for the log: the kind of error and its position. The error's own text
/// may quote the value that does not fit, which is content.
pub(crate) fn without_content(error: &serde_json::Error) -> String {
    let (kind, line, column) = (error.classify(), error.line(), error.column());
    format!("{kind:?} error at line {line}, column {column}")
}

/// What a client is told when its request cannot be served.
///
/// Made by naming the row of the table, `ApiError::new(ErrorCode::InvalidValue, "…")`; status and
/// `type` follow from the code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The row of the table.
    pub code: ErrorCode,
    /// What happened, to which field or tool, and what to do.
    pub message: String,
    /// The field at fault, as a path: `input[2].content[0].image_url`.
    pub param: Option<String>,
    /// How long to wait before trying again.
    pub retry_after: Option<Duration>,
    /// Whether clients are told not to send the same request again: it would fail in the same way, haft
    /// has already repeated it, or a tool with effects may have run.
    pub must_not_retry: bool,
}

impl ApiError {
    /// An error of this row, in these words.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            param: None,
            retry_after: None,
            must_not_retry: false,
        }
    }

    /// Tells clients not to send the same request again.
    #[must_use]
    pub fn final_for_client(mut self) -> Self {
        self.must_not_retry = true;
        self
    }

    /// Names the field at fault.
    #[must_use]
    pub fn at(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// Says how long to wait.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// A body that cannot be read as JSON.
    pub(crate) fn of_json(error: &serde_json::Error) -> Self {
        // The parser counts how deep it is, and says so in these words.
        let message = if error.to_string().starts_with("recursion limit exceeded") {
            format!("the body is nested more than {MAX_DEPTH} levels deep: send it flatter")
        } else {
            format!("the body is not valid JSON: {error}")
        };
        Self::new(ErrorCode::InvalidJson, message)
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.code.row().0
    }

    /// After how many seconds to try again; always said where the status means that.
    pub(crate) fn retry_seconds(&self) -> Option<u64> {
        let status = self.status();
        let is_expected =
            status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE;
        let rounded = |wait: Duration| wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        match self.retry_after {
            Some(wait) => Some(rounded(wait).max(1)),
            None => is_expected.then_some(1),
        }
    }

    /// The members of the `error` object.
    pub fn body(&self) -> ErrorBody<'_> {
        ErrorBody {
            message: &self.message,
            kind: self.code.row().1,
            param: self.param.as_deref(),
            code: self.code.as_str(),
        }
    }
}

/// The `error` object: four members, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ErrorBody<'e> {
    message: &'e str,
    #[serde(rename = "type")]
    kind: &'static str,
    param: Option<&'e str>,
    code: &'static str,
}

macro_rules! table {
    ($($(#[$doc:meta])* $name:ident => $code:literal, $status:ident, $kind:literal;)*) => {
        /// The rows of the table of errors.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[$doc])* $name,)*
        }

        impl ErrorCode {
            /// Every row, for tests and documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// As it is written.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }

            fn row(self) -> (StatusCode, &'static str) {
                match self {
                    $(Self::$name => (StatusCode::$status, $kind),)*
                }
            }
        }
    };
}

table! {
    /// The body is no JSON.
    InvalidJson => "invalid_json", BAD_REQUEST, "invalid_request";
    /// A field has the wrong type.
    InvalidType => "invalid_type", BAD_REQUEST, "invalid_request";
    /// A field is missing.
    MissingRequiredParameter => "missing_required_parameter", BAD_REQUEST, "invalid_request";
    /// A field has a value that it cannot have.
    InvalidValue => "invalid_value", BAD_REQUEST, "invalid_request";
    /// A field has a value that haft does not support.
    UnsupportedValue => "unsupported_value", BAD_REQUEST, "invalid_request";
    /// A field that the API does not have.
    UnknownParameter => "unknown_parameter", BAD_REQUEST, "invalid_request";
    /// A field cannot be used here.
    UnsupportedParameter => "unsupported_parameter", BAD_REQUEST, "invalid_request";
    /// A text is too long.
    StringAboveMaxLength => "string_above_max_length", BAD_REQUEST, "invalid_request";
    /// A whole number is too small.
    IntegerBelowMinValue => "integer_below_min_value", BAD_REQUEST, "invalid_request";
    /// A number is too large.
    DecimalAboveMaxValue => "decimal_above_max_value", BAD_REQUEST, "invalid_request";
    /// There is no such response to go on from.
    PreviousResponseNotFound => "previous_response_not_found", BAD_REQUEST, "invalid_request";
    /// An output for a call that is not there.
    ToolCallNotFound => "tool_call_not_found", BAD_REQUEST, "invalid_request";
    /// A call without output.
    MissingToolOutput => "missing_tool_output", BAD_REQUEST, "invalid_request";
    /// A call with two outputs.
    DuplicateToolOutput => "duplicate_tool_output", BAD_REQUEST, "invalid_request";
    /// There is no such tool.
    ToolNotFound => "tool_not_found", BAD_REQUEST, "invalid_request";
    /// Nobody provides a tool of this type.
    UnsupportedTool => "unsupported_tool", BAD_REQUEST, "invalid_request";
    /// Two tools of one name.
    DuplicateTool => "duplicate_tool", BAD_REQUEST, "invalid_request";
    /// A tool's parameters are no JSON schema.
    InvalidFunctionParameters => "invalid_function_parameters", BAD_REQUEST, "invalid_request";
    /// An MCP server that the operator does not allow.
    McpServerNotAllowed => "mcp_server_not_allowed", BAD_REQUEST, "invalid_request";
    /// An item of a type that nobody knows.
    UnsupportedItemType => "unsupported_item_type", BAD_REQUEST, "invalid_request";
    /// A part that the model behind cannot take.
    UnsupportedContent => "unsupported_content", BAD_REQUEST, "invalid_request";
    /// An answer to an approval that nobody asked for.
    ApprovalRequestNotFound => "approval_request_not_found", BAD_REQUEST, "invalid_request";
    /// A sealed item that is damaged or not ours.
    InvalidEncryptedContent => "invalid_encrypted_content", BAD_REQUEST, "invalid_request";
    /// More than the model can take.
    ContextLengthExceeded => "context_length_exceeded", BAD_REQUEST, "invalid_request";
    /// The provider refuses the prompt.
    InvalidPrompt => "invalid_prompt", BAD_REQUEST, "invalid_request";
    /// A WebSocket that was open for too long.
    ConnectionLimitReached => "websocket_connection_limit_reached", BAD_REQUEST, "invalid_request";
    /// No key, or a wrong one.
    InvalidApiKey => "invalid_api_key", UNAUTHORIZED, "invalid_request";
    /// A key that does not reach so far.
    PermissionDenied => "permission_denied", FORBIDDEN, "invalid_request";
    /// There is no such model.
    ModelNotFound => "model_not_found", NOT_FOUND, "not_found";
    /// There is no such response.
    ResponseNotFound => "response_not_found", NOT_FOUND, "not_found";
    /// There is no such conversation.
    ConversationNotFound => "conversation_not_found", NOT_FOUND, "not_found";
    /// There is no such item.
    ItemNotFound => "item_not_found", NOT_FOUND, "not_found";
    /// There is no such path.
    RouteNotFound => "route_not_found", NOT_FOUND, "not_found";
    /// The path does not take this method.
    MethodNotAllowed => "method_not_allowed", METHOD_NOT_ALLOWED, "invalid_request";
    /// The body is too large.
    RequestTooLarge => "request_too_large", PAYLOAD_TOO_LARGE, "invalid_request";
    /// The headers are too many or too long.
    RequestHeadersTooLarge => "request_headers_too_large", REQUEST_HEADER_FIELDS_TOO_LARGE, "invalid_request";
    /// The body is not declared as JSON.
    UnsupportedContentType => "unsupported_content_type", UNSUPPORTED_MEDIA_TYPE, "invalid_request";
    /// Another run is using the conversation.
    ConversationLocked => "conversation_locked", CONFLICT, "invalid_request";
    /// The response to go on from is not finished.
    PreviousResponseInProgress => "previous_response_in_progress", CONFLICT, "invalid_request";
    /// The MCP server that must be used cannot be reached.
    McpServerUnavailable => "mcp_server_unavailable", FAILED_DEPENDENCY, "model_error";
    /// Too many requests, here or at the provider.
    RateLimitExceeded => "rate_limit_exceeded", TOO_MANY_REQUESTS, "too_many_requests";
    /// What was paid for is used up.
    InsufficientQuota => "insufficient_quota", TOO_MANY_REQUESTS, "too_many_requests";
    /// Our fault.
    ServerError => "server_error", INTERNAL_SERVER_ERROR, "server_error";
    /// The provider broke or lied.
    ModelError => "model_error", INTERNAL_SERVER_ERROR, "model_error";
    /// The model did not follow `tool_choice`.
    ToolChoiceNotFollowed => "tool_choice_not_followed", INTERNAL_SERVER_ERROR, "model_error";
    /// The answer does not match the schema that the request demands, however often it was asked for.
    OutputInvalid => "output_invalid", UNPROCESSABLE_ENTITY, "model_error";
    /// The provider does not accept the key of this server.
    BackendAuthenticationError => "backend_authentication_error", BAD_GATEWAY, "model_error";
    /// The provider does not let the key of this server do this.
    BackendPermissionDenied => "backend_permission_denied", BAD_GATEWAY, "model_error";
    /// The API is not where this server looks for it.
    BackendNotFound => "backend_not_found", BAD_GATEWAY, "model_error";
    /// The provider is not set up for the request.
    BackendMisconfigured => "backend_misconfigured", BAD_GATEWAY, "model_error";
    /// The provider cannot be reached.
    BackendUnreachable => "backend_unreachable", BAD_GATEWAY, "model_error";
    /// The provider did not answer in time.
    BackendTimeout => "backend_timeout", GATEWAY_TIMEOUT, "model_error";
    /// Too much to do.
    ServerIsOverloaded => "server_is_overloaded", SERVICE_UNAVAILABLE, "server_error";
    /// Somebody cancelled the response; only inside a response, never as an answer of its own.
    ResponseCancelled => "response_cancelled", CONFLICT, "invalid_request";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logged_json_error_does_not_quote_the_value() {
        let error = serde_json::from_str::<u32>("\"hunter2\"").unwrap_err();
        assert!(error.to_string().contains("hunter2"), "{error}");
        assert_eq!(without_content(&error), "Data error at line 1, column 9");
    }
}

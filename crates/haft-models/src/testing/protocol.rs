//! The four protocols that the server speaks, by path.

use serde_json::{Value, json};

/// A wire protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// `OpenAI`'s Chat Completions, `POST /v1/chat/completions`.
    ChatCompletions,
    /// `OpenAI`'s Responses, `POST /v1/responses`.
    Responses,
    /// Anthropic's Messages, `POST /v1/messages`.
    Messages,
    /// Ollama's own, `POST /api/chat`.
    Ollama,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::ChatCompletions,
        Self::Responses,
        Self::Messages,
        Self::Ollama,
    ];

    /// Where it is spoken.
    pub fn path(self) -> &'static str {
        match self {
            Self::ChatCompletions => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
            Self::Ollama => "/api/chat",
        }
    }

    pub(super) fn at(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.path() == path)
    }

    /// How it is called in messages.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::ChatCompletions => "Chat Completions",
            Self::Responses => "Responses",
            Self::Messages => "Anthropic Messages",
            Self::Ollama => "Ollama",
        }
    }

    /// Whether a request wants a stream; Ollama streams unless told otherwise.
    pub(super) fn is_streamed(self, body: &Value) -> bool {
        let said = body.get("stream").and_then(Value::as_bool);
        said.unwrap_or(self == Self::Ollama)
    }

    pub(super) fn stream_type(self) -> &'static str {
        match self {
            Self::Ollama => "application/x-ndjson",
            _ => "text/event-stream; charset=utf-8",
        }
    }

    /// An error in the protocol's own form.
    pub(super) fn error_body(self, status: u16, code: Option<&str>, message: &str) -> Value {
        match self {
            Self::ChatCompletions | Self::Responses => {
                let (kind, usual) = match status {
                    401 => ("invalid_request_error", Some("invalid_api_key")),
                    404 => ("invalid_request_error", Some("model_not_found")),
                    429 => ("rate_limit_error", Some("rate_limit_exceeded")),
                    500.. => ("server_error", Some("server_error")),
                    _ => ("invalid_request_error", None),
                };
                let code = code.or(usual);
                json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
            }
            Self::Messages => {
                let usual = match status {
                    401 => "authentication_error",
                    403 => "permission_error",
                    404 => "not_found_error",
                    413 => "request_too_large",
                    429 => "rate_limit_error",
                    529 => "overloaded_error",
                    500.. => "api_error",
                    _ => "invalid_request_error",
                };
                let kind = code.unwrap_or(usual);
                json!({
                    "type": "error",
                    "error": {"type": kind, "message": message},
                    "request_id": "req_script",
                })
            }
            Self::Ollama => json!({"error": message}),
        }
    }
}

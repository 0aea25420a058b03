//! What goes wrong with an answer.

use std::collections::BTreeMap;
use std::time::Duration;

use haft_core::{ModelError, ModelErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What goes wrong with an answer. Counted events are those of the protocol: a server's are its SSE
/// events or lines, the model's in this process are [`ModelEvent`](haft_core::ModelEvent)s. An answer
/// that is not streamed counts as one event.
///
/// In JSON a fault without members is a word (`"hang"`), one with members an object
/// (`{"status":{"code":429,"headers":{"retry-after":"2"}}}`, `{"cut_after_events":3}`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Fault {
    /// An HTTP error instead of an answer.
    Status {
        /// The status.
        code: u16,
        /// The body: text as it is, anything else as JSON. Absent: an error in the protocol's form.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<Value>,
        /// Headers, such as `retry-after`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
    /// A page of HTML with this status, as proxies send it.
    Html(u16),
    /// The connection is closed before anything was answered.
    Closed,
    /// The connection breaks after so many events.
    CutAfterEvents(usize),
    /// The connection breaks after so many bytes of the body; in this process, before the delta
    /// that would exceed so many bytes of text.
    CutAfterBytes(usize),
    /// The answer ends after so many events, as if it were whole.
    EndAfterEvents(usize),
    /// Nothing ever comes, until the caller lets go.
    Hang,
    /// Nothing more comes after so many events, until the caller lets go.
    HangAfterEvents(usize),
    /// An error event in the protocol's form, inside an answer that began well.
    ErrorEvent {
        /// After so many events.
        after_events: usize,
        /// The provider's code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// Its words.
        message: String,
    },
    /// Bytes that mean nothing, inside an answer that began well.
    Garbage {
        /// After so many events.
        after_events: usize,
        /// The bytes, as text; absent: some that are not even UTF-8.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// What ends a stream that is whole already is missing: `[DONE]`, `message_stop`. Without
    /// meaning for Ollama and in this process.
    NoDone,
    /// Calls come without ids.
    MissingCallIds,
    /// All calls bear the id of the first call of the script.
    RepeatedCallIds,
    /// Arguments come as JSON objects where the protocol says text; for Anthropic, whole at the
    /// beginning of the block. Without meaning in this process.
    ObjectArguments,
}

impl Fault {
    /// An HTTP error in the protocol's form.
    pub fn status(code: u16) -> Self {
        Self::Status {
            code,
            body: None,
            headers: BTreeMap::new(),
        }
    }

    /// Sets the body of an HTTP error; other faults stay as they are.
    #[must_use]
    pub fn with_body(mut self, json: impl Into<Value>) -> Self {
        if let Self::Status { body, .. } = &mut self {
            *body = Some(json.into());
        }
        self
    }

    /// Adds a header to an HTTP error; other faults stay as they are.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Self::Status { headers, .. } = &mut self {
            headers.insert(name.into(), value.into());
        }
        self
    }

    /// An error event after so many events.
    pub fn error_event(after_events: usize, message: impl Into<String>) -> Self {
        Self::ErrorEvent {
            after_events,
            code: None,
            message: message.into(),
        }
    }

    /// Bytes that mean nothing after so many events.
    pub fn garbage(after_events: usize) -> Self {
        Self::Garbage {
            after_events,
            text: None,
        }
    }

    /// What a caller in this process gets instead of a stream, if the fault comes that early.
    pub(crate) fn refusal(&self) -> Option<ModelError> {
        match self {
            Self::Closed => Some(hung_up()),
            Self::Html(status) => {
                let message = "the answer is a page of HTML";
                Some(ModelError::new(kind_of(*status, None), message).with_status(*status))
            }
            Self::Status {
                code,
                body,
                headers,
            } => Some(status_error(*code, body.as_ref(), headers)),
            _ => None,
        }
    }
}

/// The connection broke.
pub(crate) fn hung_up() -> ModelError {
    ModelError::new(
        ModelErrorKind::Unreachable,
        "the connection was closed before the answer was whole",
    )
}

fn status_error(
    status: u16,
    body: Option<&Value>,
    headers: &BTreeMap<String, String>,
) -> ModelError {
    let error = body.map(|body| body.get("error").unwrap_or(body));
    let member = |name: &str| error.and_then(|error| error.get(name)?.as_str());
    let message = match error {
        Some(Value::String(text)) => text.clone(),
        Some(other) => member("message").map_or_else(|| other.to_string(), str::to_owned),
        None => "the script says so".to_owned(),
    };
    let code = member("code").or_else(|| member("type"));
    let mut failure = ModelError::new(kind_of(status, code), message).with_status(status);
    failure.code = code.map(str::to_owned);
    failure.retry_after = retry_after(headers);
    failure
}

fn kind_of(status: u16, code: Option<&str>) -> ModelErrorKind {
    match (status, code) {
        (_, Some("insufficient_quota")) => ModelErrorKind::QuotaExhausted,
        (_, Some("context_length_exceeded")) => ModelErrorKind::ContextLength,
        (429, _) => ModelErrorKind::RateLimit,
        (401 | 403, _) => ModelErrorKind::Unauthorized,
        (404, _) => ModelErrorKind::NotFound,
        (408 | 504, _) => ModelErrorKind::Timeout,
        (500.., _) => ModelErrorKind::ServerError,
        (400.., _) => ModelErrorKind::InvalidRequest,
        _ => ModelErrorKind::Protocol,
    }
}

fn retry_after(headers: &BTreeMap<String, String>) -> Option<Duration> {
    let number = |wanted: &str| {
        let mut headers = headers.iter();
        let (_, value) = headers.find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
        value.trim().parse::<u64>().ok()
    };
    number("retry-after-ms")
        .map(Duration::from_millis)
        .or_else(|| number("retry-after").map(Duration::from_secs))
}

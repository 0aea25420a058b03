//! What a provider says when it refuses, in its several shapes.

use std::time::SystemTime;

use haft_core::{ModelError, ModelErrorKind};
use reqwest::header::LOCATION;
use serde_json::Value;

use super::answer::Answer;
use super::diagnosis::{is_about_model, known_complaint};
use super::{Body, Redactor, Timeouts, retry_after};

/// How much of a refusal is read, and how much of it is shown.
const MAX_READ_BYTES: usize = 64 * 1024;
const MAX_SHOWN_CHARS: usize = 1_000;

/// The code of a refusal because the provider does not have the model.
pub(super) const MODEL_NOT_FOUND: &str = "model_not_found";

/// The error that an answer without success is.
pub(super) async fn refused(
    answer: Answer,
    timeouts: &Timeouts,
    redactor: &Redactor,
) -> ModelError {
    let status = answer.status.as_u16();
    let wait = retry_after::read(&answer.headers, SystemTime::now());
    let target = answer.header(LOCATION).map(origin_of);
    let body = Body::new(answer, *timeouts, redactor.clone());
    let text = bounded(body, redactor).await;
    let mut error = match target {
        Some(target) if (300..400).contains(&status) => redirected(status, &target),
        _ => of_body(status, &text),
    };
    error.retry_after = wait;
    finished(error, redactor)
}

/// As much of a refusal as is read.
pub(super) async fn bounded(mut body: Body, redactor: &Redactor) -> Vec<u8> {
    let mut text = Vec::new();
    // What can be read is read; a body that breaks off is no reason to lose the status.
    while let Ok(Some(chunk)) = body.chunk().await {
        text.extend_from_slice(&chunk);
        if text.len() > MAX_READ_BYTES {
            // Half a key at the end would not be recognised.
            text.truncate(MAX_READ_BYTES.saturating_sub(redactor.longest()));
            break;
        }
    }
    text
}

fn redirected(status: u16, target: &str) -> ModelError {
    let words = format!("it points to `{target}`: set the base address to where the API really is");
    ModelError::new(ModelErrorKind::NotFound, words).with_status(status)
}

/// Scheme and host of an address; the rest may hold secrets.
fn origin_of(location: &str) -> String {
    match reqwest::Url::parse(location) {
        Ok(url) => url.origin().ascii_serialization(),
        Err(_) => String::from("another path"),
    }
}

pub(super) fn of_body(status: u16, body: &[u8]) -> ModelError {
    let text = String::from_utf8_lossy(body);
    let refusal = match serde_json::from_str::<Value>(text.trim()) {
        Ok(json) => Refusal::read(&json),
        Err(_) => Refusal {
            message: plain(&text),
            ..Refusal::default()
        },
    };
    refusal.into_error(Some(status))
}

/// The error that stands in the middle of a stream, in the JSON of a frame. It is not
/// [`finished`] yet.
pub(crate) fn in_stream(json: &Value) -> ModelError {
    let refusal = Refusal::read(json);
    let status = refusal.status;
    refusal.into_error(status)
}

/// An error that can be shown: without secrets, and not too long.
pub(crate) fn finished(error: ModelError, redactor: &Redactor) -> ModelError {
    // First the secrets, then the cut: a cut key would not be recognised.
    let mut error = redactor.clean_error(error);
    error.message = shortened(&error.message);
    error.code = error.code.map(|code| haft_core::cut(&code));
    error
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[derive(Debug, Default)]
struct Refusal {
    message: String,
    code: Option<String>,
    category: Option<String>,
    status: Option<u16>,
}

impl Refusal {
    /// Reads `{"error":{…}}`, `{"error":"…"}`, `{"message":…}`, `{"detail":…}` and the list that
    /// some proxies put around them.
    fn read(json: &Value) -> Self {
        let outer = json
            .as_array()
            .and_then(|list| list.first())
            .unwrap_or(json);
        let inner = match outer.get("error") {
            Some(error @ Value::Object(_)) => error,
            _ => outer,
        };
        let text = |from: &Value, key: &str| words(from.get(key)?);
        let message = text(inner, "message")
            .or_else(|| text(inner, "error"))
            .or_else(|| text(inner, "detail"))
            .or_else(|| text(inner, "msg"))
            .or_else(|| text(outer, "message"))
            .unwrap_or_else(|| match inner {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            });
        let number = |key: &str| {
            let status = inner.get(key)?.as_u64()?;
            u16::try_from(status)
                .ok()
                .filter(|status| (400..600).contains(status))
        };
        let name = |key: &str| Some(inner.get(key)?.as_str()?.to_owned());
        Self {
            message: plain(&message),
            code: name("code"),
            category: name("type").or_else(|| name("status")),
            status: number("code").or_else(|| number("status")),
        }
    }

    fn into_error(self, status: Option<u16>) -> ModelError {
        let message = if self.message.is_empty() {
            String::from("it gives no reason")
        } else {
            self.message
        };
        if let Some(complaint) = known_complaint(&message) {
            let mut error = ModelError::new(ModelErrorKind::Misconfigured, complaint.message);
            error.status = status;
            return error.with_operator_note(complaint.remedy);
        }
        let kind = [&self.code, &self.category]
            .into_iter()
            .flatten()
            .find_map(|code| by_code(code))
            .or_else(|| by_words(&message, status))
            .unwrap_or_else(|| by_status(status));
        let code = if kind == ModelErrorKind::NotFound && is_about_model(&message) {
            Some(MODEL_NOT_FOUND.to_owned())
        } else {
            self.code.or(self.category)
        };
        let mut error = ModelError::new(kind, message);
        error.status = status;
        error.code = code;
        error
    }
}

/// A text, or the texts of a list of complaints.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) => {
            let texts: Vec<_> = list
                .iter()
                .filter_map(|entry| words(entry.get("msg").unwrap_or(entry)))
                .collect();
            (!texts.is_empty()).then(|| texts.join("; "))
        }
        _ => None,
    }
}

/// A page of HTML as one line of text; other text without runs of blanks.
fn plain(text: &str) -> String {
    let start = text.trim_start().get(..200).unwrap_or(text.trim_start());
    let start = start.to_ascii_lowercase();
    let is_page =
        start.starts_with("<!doctype") || start.contains("<html") || start.contains("<head");
    let text = if is_page {
        without_tags(text)
    } else {
        text.to_owned()
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn without_tags(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        text.push_str(&rest[..at]);
        text.push(' ');
        rest = &rest[at..];
        let tag = rest[1..]
            .split(|c: char| !c.is_ascii_alphanumeric())
            .next()
            .unwrap_or("");
        // What stands in these is not for people.
        let hidden = ["script", "style"]
            .into_iter()
            .find(|name| tag.eq_ignore_ascii_case(name));
        let end = match hidden {
            Some(name) => rest.to_ascii_lowercase().find(&format!("</{name}")),
            None => rest.find('>').map(|end| end + 1),
        };
        rest = end.map_or("", |end| &rest[end.max(1)..]);
        if hidden.is_some() {
            rest = rest.find('>').map_or("", |end| &rest[end + 1..]);
        }
    }
    text + rest
}

fn by_code(code: &str) -> Option<ModelErrorKind> {
    use ModelErrorKind as Kind;
    Some(match code.to_ascii_lowercase().as_str() {
        "context_length_exceeded" | "exceed_context_size_error" | "request_too_large" => {
            Kind::ContextLength
        }
        "insufficient_quota"
        | "billing_hard_limit_reached"
        | "billing_not_active"
        | "billing_error" => Kind::QuotaExhausted,
        "rate_limit_exceeded" | "rate_limit_error" | "too_many_requests" => Kind::RateLimit,
        "overloaded_error"
        | "overloaded"
        | "server_is_overloaded"
        | "slow_down"
        | "server_error"
        | "api_error"
        | "internal_server_error"
        | "internalservererror"
        | "unavailable_error" => Kind::ServerError,
        "timeout_error" => Kind::Timeout,
        "invalid_api_key" | "authentication_error" | "permission_error" => Kind::Unauthorized,
        "content_filter" | "content_policy_violation" | "invalid_prompt" => Kind::PromptRefused,
        "model_not_found" | "not_found_error" => Kind::NotFound,
        _ => return None,
    })
}

fn by_words(message: &str, status: Option<u16>) -> Option<ModelErrorKind> {
    // A server in trouble may say anything about why.
    if status.is_some_and(|status| status >= 500 || status == 401) {
        return None;
    }
    let message = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|words| message.contains(words));
    if says(&[
        "maximum context length",
        "context length exceeded",
        "context_length_exceeded",
        "exceeds the available context size",
        "exceed context limit",
        "exceeds the context window",
        "exceeded model token limit",
        "longer than the model's context",
        "prompt is too long",
        "input is too long",
    ]) {
        Some(ModelErrorKind::ContextLength)
    } else if says(&[
        "credit balance is too low",
        "exceeded your current quota",
        "insufficient balance",
        "insufficient credits",
        "insufficient_quota",
    ]) {
        Some(ModelErrorKind::QuotaExhausted)
    } else if says(&["content management policy", "content policy violation"]) {
        Some(ModelErrorKind::PromptRefused)
    } else if status.is_none() && says(&["overloaded"]) {
        Some(ModelErrorKind::ServerError)
    } else {
        None
    }
}

fn by_status(status: Option<u16>) -> ModelErrorKind {
    match status {
        Some(401 | 403) => ModelErrorKind::Unauthorized,
        Some(402) => ModelErrorKind::QuotaExhausted,
        Some(404 | 405 | 410 | 300..=399) => ModelErrorKind::NotFound,
        Some(408 | 504 | 524) => ModelErrorKind::Timeout,
        Some(413) => ModelErrorKind::ContextLength,
        Some(429) => ModelErrorKind::RateLimit,
        Some(400..=499) => ModelErrorKind::InvalidRequest,
        _ => ModelErrorKind::ServerError,
    }
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;

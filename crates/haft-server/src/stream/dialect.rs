//! The two dialects and their three differences (`open-responses.md` §0.1).

use std::borrow::Cow;

use axum::http::HeaderMap;
use serde_json::{Map, Value, json};

use crate::wire::ResponseStatus;

/// The event names, statuses and error shape that a client expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Those of the Open Responses specification.
    OpenResponses,
    /// Those of `OpenAI`'s API, which nearly all clients are written for.
    OpenAi,
}

impl Dialect {
    /// The dialect for a client that does not name one: `OpenAI`'s, unless its headers show that it wants the
    /// specification's. Typed clients such as async-openai and `LiteLLM` fail on names that `OpenAI` does not have.
    pub(crate) fn of_client(headers: &HeaderMap) -> Self {
        let agent = headers.get("user-agent");
        let agent = agent.and_then(|value| value.to_str().ok());
        // The official compliance suite (https://github.com/openresponses/openresponses, bin/compliance-test.ts)
        // sends no header of its own: it calls Bun's `fetch` without an SDK. Its schema of events is a closed list
        // without `response.reasoning_text.delta`. SDKs that run on Bun name themselves instead.
        let is_compliance_suite = agent.is_some_and(|agent| agent.starts_with("Bun/"))
            && !headers.contains_key("x-stainless-lang")
            && !headers.contains_key("originator");
        if is_compliance_suite {
            Self::OpenResponses
        } else {
            Self::OpenAi
        }
    }

    /// By the name that the header `Haft-Dialect` and the configuration use.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        match name {
            "open-responses" => Some(Self::OpenResponses),
            "openai" => Some(Self::OpenAi),
            _ => None,
        }
    }

    /// The status as this dialect writes it.
    pub(crate) fn status(self, status: ResponseStatus) -> ResponseStatus {
        match (self, status) {
            (Self::OpenAi, ResponseStatus::RequiresAction) => ResponseStatus::Completed,
            _ => status,
        }
    }

    /// An event, `type` and body, as this dialect writes it.
    pub(crate) fn render<'e>(self, kind: &'e str, json: &'e str) -> (Cow<'e, str>, Cow<'e, str>) {
        let as_it_is = (Cow::Borrowed(kind), Cow::Borrowed(json));
        if self == Self::OpenResponses {
            return as_it_is;
        }
        match kind {
            "response.reasoning.delta" | "response.reasoning.done" => {
                let renamed = kind.replacen("reasoning", "reasoning_text", 1);
                // The type is the first member; what the model wrote comes later.
                let json = json.replacen(kind, &renamed, 1);
                (renamed.into(), json.into())
            }
            "error" => match flat_error(json) {
                Some(flat) => (kind.into(), flat.into()),
                None => as_it_is,
            },
            "response.completed" => match completed(json) {
                Some(json) => (kind.into(), json.into()),
                None => as_it_is,
            },
            _ => as_it_is,
        }
    }
}

fn flat_error(json: &str) -> Option<String> {
    let event: Map<String, Value> = serde_json::from_str(json).ok()?;
    let error = event.get("error")?;
    let flat = json!({
        "type": "error",
        "sequence_number": event.get("sequence_number")?,
        "code": error.get("code")?,
        "message": error.get("message")?,
        "param": error.get("param")?,
    });
    Some(flat.to_string())
}

/// A response that waits for its client is `completed` here.
fn completed(json: &str) -> Option<String> {
    if !json.contains(r#""status":"requires_action""#) {
        return None;
    }
    let mut event: Value = serde_json::from_str(json).ok()?;
    let status = event.pointer_mut("/response/status")?;
    if status != "requires_action" {
        return None;
    }
    *status = "completed".into();
    Some(event.to_string())
}

//! The two dialects and their three differences (`open-responses.md` §0.1).

use std::borrow::Cow;

use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::wire::ResponseStatus;

/// Whose words a client expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Dialect {
    /// The specification's.
    #[default]
    OpenResponses,
    /// Those of `OpenAI`'s clients.
    OpenAi,
}

impl Dialect {
    /// The dialect that a client's headers give away.
    pub(crate) fn of_client(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let agent = text("user-agent").unwrap_or_default();
        let is_openai = headers.contains_key("x-stainless-lang")
            || text("originator").is_some_and(|originator| originator.starts_with("codex"))
            || agent.starts_with("OpenAI/")
            || agent.starts_with("codex")
            || agent.contains("ai-sdk/");
        if is_openai {
            Self::OpenAi
        } else {
            Self::OpenResponses
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

//! The faults, and what each must come to.

use std::time::{Duration, SystemTime};

use crate::KEY;
use crate::adapter::{Adapter, Silence};
use crate::backend::{Behaviour, End};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    ResetBeforeAnswer,
    ResetMidStream,
    StalledBeforeAnswer,
    StalledAfterHead,
    StalledMidStream,
    LimitedForSeconds,
    LimitedUntilDate,
    ServerError,
    Overloaded,
    HtmlWith502,
    HtmlWith200,
    TruncatedJson,
    TruncatedFirstPiece,
    TruncatedLaterPiece,
    EndsTooEarly,
    WrongContentType,
    Empty,
    RejectedKey,
    DeniedKey,
    UnknownModel,
    UnknownPath,
    TooLong,
    QuotaUsedUp,
    Refused,
    NoToolParser,
}

impl Fault {
    pub(crate) const ALL: [Self; 25] = [
        Self::ResetBeforeAnswer,
        Self::ResetMidStream,
        Self::StalledBeforeAnswer,
        Self::StalledAfterHead,
        Self::StalledMidStream,
        Self::LimitedForSeconds,
        Self::LimitedUntilDate,
        Self::ServerError,
        Self::Overloaded,
        Self::HtmlWith502,
        Self::HtmlWith200,
        Self::TruncatedJson,
        Self::TruncatedFirstPiece,
        Self::TruncatedLaterPiece,
        Self::EndsTooEarly,
        Self::WrongContentType,
        Self::Empty,
        Self::RejectedKey,
        Self::DeniedKey,
        Self::UnknownModel,
        Self::UnknownPath,
        Self::TooLong,
        Self::QuotaUsedUp,
        Self::Refused,
        Self::NoToolParser,
    ];

    /// What the backend does, in the words of the adapter that asks.
    pub(crate) fn behaviour(self, adapter: Adapter) -> Behaviour {
        let stream = [("content-type", adapter.stream_type())];
        let json = ("content-type", "application/json");
        let html = [("content-type", "text/html; charset=utf-8")];
        // Providers repeat keys that they do not like.
        let error = format!(r#"{{"error":{{"message":"not with {KEY}","type":"x"}}}}"#);
        let page = format!(
            "<!DOCTYPE html><html><head><title>Gateway</title></head><body>{KEY}</body></html>"
        );
        let cut = r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"Hel"#;
        let refuse = |status: u16, message: &str| {
            let body = serde_json::json!({"error": {"message": message}}).to_string();
            Behaviour::say(status, &[json], &body, End::Close)
        };
        match self {
            Self::ResetBeforeAnswer => Behaviour::silent(End::Reset),
            Self::ResetMidStream => Behaviour::say(200, &stream, &adapter.beginning(), End::Reset),
            Self::StalledBeforeAnswer => Behaviour::silent(End::Stall),
            Self::StalledAfterHead => Behaviour::say(200, &stream, "", End::Stall),
            Self::StalledMidStream => {
                Behaviour::say(200, &stream, &adapter.beginning(), End::Stall)
            }
            Self::LimitedForSeconds => {
                Behaviour::say(429, &[json, ("retry-after", "7")], &error, End::Close)
            }
            Self::LimitedUntilDate => {
                let then = SystemTime::now() + Duration::from_mins(1);
                let then = httpdate::fmt_http_date(then);
                Behaviour::say(429, &[json, ("retry-after", &then)], &error, End::Close)
            }
            Self::ServerError => Behaviour::say(500, &[json], &error, End::Close),
            Self::Overloaded => Behaviour::say(503, &[json], &error, End::Close),
            Self::HtmlWith502 => Behaviour::say(502, &html, &page, End::Close),
            Self::HtmlWith200 => Behaviour::say(200, &html, &page, End::Close),
            Self::TruncatedJson => Behaviour::say(200, &[json], cut, End::Close),
            Self::TruncatedFirstPiece => {
                Behaviour::say(200, &stream, adapter.half_a_piece(), End::Close)
            }
            Self::TruncatedLaterPiece => {
                let said = adapter.beginning() + adapter.half_a_piece();
                Behaviour::say(200, &stream, &said, End::Close)
            }
            Self::EndsTooEarly => Behaviour::say(200, &stream, &adapter.beginning(), End::Close),
            Self::WrongContentType => {
                let kind = [("content-type", "application/octet-stream")];
                Behaviour::say(200, &kind, "\u{1}\u{2}nothing to read", End::Close)
            }
            Self::Empty => Behaviour::say(200, &stream, "", End::Close),
            Self::RejectedKey => Behaviour::say(401, &[json], &error, End::Close),
            Self::DeniedKey => Behaviour::say(403, &[json], &error, End::Close),
            Self::UnknownModel => refuse(404, "The model `m` does not exist."),
            Self::UnknownPath => refuse(404, "Not Found"),
            Self::TooLong => refuse(400, "This model's maximum context length is 8 tokens."),
            Self::QuotaUsedUp => refuse(429, "You exceeded your current quota"),
            Self::Refused => refuse(400, "temperature is too high"),
            Self::NoToolParser => refuse(
                400,
                "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
            ),
        }
    }

    /// Where nothing more comes.
    pub(crate) fn silence(self) -> Silence {
        match self {
            Self::StalledBeforeAnswer => Silence::BeforeAnswer,
            Self::StalledAfterHead | Self::StalledMidStream => Silence::InAnswer,
            _ => Silence::Nowhere,
        }
    }

    /// Whether something of an answer came before it.
    pub(crate) fn is_mid_stream(self) -> bool {
        matches!(
            self,
            Self::ResetMidStream
                | Self::StalledMidStream
                | Self::TruncatedLaterPiece
                | Self::EndsTooEarly
        )
    }

    /// Status, type and code.
    pub(crate) fn row(self) -> (u64, &'static str, &'static str) {
        match self {
            Self::ResetBeforeAnswer | Self::ResetMidStream | Self::EndsTooEarly | Self::Empty => {
                (502, "model_error", "backend_unreachable")
            }
            Self::StalledBeforeAnswer | Self::StalledAfterHead | Self::StalledMidStream => {
                (504, "model_error", "backend_timeout")
            }
            Self::LimitedForSeconds | Self::LimitedUntilDate => {
                (429, "too_many_requests", "rate_limit_exceeded")
            }
            Self::Overloaded => (503, "server_error", "server_is_overloaded"),
            Self::ServerError
            | Self::HtmlWith502
            | Self::HtmlWith200
            | Self::TruncatedJson
            | Self::TruncatedFirstPiece
            | Self::TruncatedLaterPiece
            | Self::WrongContentType => (500, "model_error", "model_error"),
            Self::RejectedKey => (502, "model_error", "backend_authentication_error"),
            Self::DeniedKey => (502, "model_error", "backend_permission_denied"),
            Self::UnknownModel => (404, "not_found", "model_not_found"),
            Self::UnknownPath => (502, "model_error", "backend_not_found"),
            Self::TooLong => (400, "invalid_request", "context_length_exceeded"),
            Self::QuotaUsedUp => (429, "too_many_requests", "insufficient_quota"),
            Self::Refused => (400, "invalid_request", "invalid_value"),
            Self::NoToolParser => (502, "model_error", "backend_misconfigured"),
        }
    }

    /// How often the backend is asked where two attempts are allowed, and no long wait.
    pub(crate) fn requests(self) -> usize {
        match self {
            // Something came, or it would be the same again, or the wait is too long.
            Self::ResetMidStream
            | Self::StalledMidStream
            | Self::TruncatedLaterPiece
            | Self::EndsTooEarly
            | Self::HtmlWith200
            | Self::TruncatedJson
            | Self::TruncatedFirstPiece
            | Self::WrongContentType
            | Self::LimitedForSeconds
            | Self::LimitedUntilDate
            | Self::RejectedKey
            | Self::DeniedKey
            | Self::UnknownModel
            | Self::UnknownPath
            | Self::TooLong
            | Self::QuotaUsedUp
            | Self::Refused
            | Self::NoToolParser => 1,
            _ => 2,
        }
    }

    /// Whether a client that repeats the request gets the same answer.
    pub(crate) fn is_final(self) -> bool {
        matches!(
            self,
            Self::HtmlWith200
                | Self::TruncatedJson
                | Self::TruncatedFirstPiece
                | Self::TruncatedLaterPiece
                | Self::WrongContentType
                | Self::RejectedKey
                | Self::DeniedKey
                | Self::UnknownModel
                | Self::UnknownPath
                | Self::TooLong
                | Self::QuotaUsedUp
                | Self::Refused
                | Self::NoToolParser
        )
    }

    /// Whether only the operator can do something about it.
    pub(crate) fn is_operator_matter(self) -> bool {
        matches!(
            self,
            Self::RejectedKey
                | Self::DeniedKey
                | Self::UnknownModel
                | Self::UnknownPath
                | Self::NoToolParser
        )
    }

    /// How long the client is told to wait, in seconds.
    pub(crate) fn wait(self) -> Option<std::ops::RangeInclusive<u64>> {
        match self {
            Self::LimitedForSeconds => Some(7..=7),
            // The date was made when the test began.
            Self::LimitedUntilDate => Some(30..=60),
            Self::Overloaded | Self::QuotaUsedUp => Some(1..=1),
            _ => None,
        }
    }
}

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
}

impl Fault {
    pub(crate) const ALL: [Self; 17] = [
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
            | Self::LimitedUntilDate => 1,
            _ => 2,
        }
    }

    /// How long the client is told to wait, in seconds.
    pub(crate) fn wait(self) -> Option<std::ops::RangeInclusive<u64>> {
        match self {
            Self::LimitedForSeconds => Some(7..=7),
            // The date was made when the test began.
            Self::LimitedUntilDate => Some(30..=60),
            Self::Overloaded => Some(1..=1),
            _ => None,
        }
    }
}

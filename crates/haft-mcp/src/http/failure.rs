//! Failures of HTTP in haft's words.

use std::error::Error;

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};
use rmcp::transport::streamable_http_client::StreamableHttpError;

use crate::error::Cause;
use crate::text::visible;

/// How much of an answer an error shows.
const SHOWN_BYTES: usize = 300;

/// A failure on the way, for rmcp.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(transparent)]
pub(crate) struct HttpFailure(pub(crate) Cause);

pub(super) type RmcpFailure = StreamableHttpError<HttpFailure>;

impl From<Cause> for HttpFailure {
    fn from(cause: Cause) -> Self {
        Self(cause)
    }
}

/// For rmcp, which looks at nothing but what it calls a client's error.
pub(super) fn told(cause: Cause) -> RmcpFailure {
    StreamableHttpError::Client(HttpFailure(cause))
}

/// What a failure of rmcp's HTTP transport is about, if it is one.
pub(crate) fn cause_of(error: &(dyn Error + 'static)) -> Option<Cause> {
    let error: &RmcpFailure = error.downcast_ref()?;
    Some(match error {
        StreamableHttpError::Client(HttpFailure(cause)) => cause.clone(),
        StreamableHttpError::AuthRequired(required) => {
            unauthorized(401, Some(&required.www_authenticate_header))
        }
        StreamableHttpError::InsufficientScope(scope) => {
            unauthorized(403, Some(&scope.www_authenticate_header))
        }
        StreamableHttpError::SessionExpired => Cause::Status {
            status: 404,
            detail: ": the session has expired".into(),
        },
        StreamableHttpError::SessionRecoveryTimeout
        | StreamableHttpError::TransportChannelClosed
        | StreamableHttpError::UnexpectedEndOfStream => Cause::ConnectionLost {
            sent: true,
            detail: String::new(),
        },
        other => Cause::Unexpected(shown(&other.to_string())),
    })
}

pub(super) fn unauthorized(status: u16, challenge: Option<&str>) -> Cause {
    Cause::Unauthorized {
        status,
        challenge: challenge.map(shown),
    }
}

/// The challenge of a refusal.
pub(super) fn challenge(headers: &HeaderMap) -> Option<String> {
    let challenge = headers.get(WWW_AUTHENTICATE)?.to_str().ok()?;
    Some(challenge.to_owned())
}

/// A status that is no success.
pub(crate) fn refused(status: u16, headers: &HeaderMap, body: &[u8]) -> Cause {
    if matches!(status, 401 | 403) {
        return unauthorized(status, challenge(headers).as_deref());
    }
    let body = shown(String::from_utf8_lossy(body).trim());
    let detail = if body.is_empty() {
        String::new()
    } else {
        format!(": {body}")
    };
    Cause::Status { status, detail }
}

/// What went wrong between here and there, without the address: it may hold a key.
pub(crate) fn on_the_way(error: reqwest::Error) -> Cause {
    let origin = error.url().map(|url| url.origin().ascii_serialization());
    let is_connect = error.is_connect();
    let error = error.without_url();
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !words.contains(&more) {
            words.push_str(": ");
            words.push_str(&more);
        }
        source = cause.source();
    }
    if let Some(origin) = origin {
        words = format!("{origin}: {words}");
    }
    if is_connect {
        Cause::Unreachable(words)
    } else {
        Cause::ConnectionLost {
            sent: true,
            detail: format!(": {words}"),
        }
    }
}

fn shown(text: &str) -> String {
    let text = visible(text);
    if text.len() <= SHOWN_BYTES {
        text
    } else {
        format!("{}…", &text[..text.floor_char_boundary(SHOWN_BYTES)])
    }
}

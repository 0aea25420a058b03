//! Who asks, by the headers of the request.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use crate::app::{App, Caller};
use crate::error::{ApiError, ErrorCode};
use crate::options::DialectChoice;
use crate::stream::Dialect;
use crate::watch::RequestWatch;
use crate::wire::new_id;

/// The caller's own id of the request if it is sane, else a new one.
pub(crate) fn sane_request_id(headers: &HeaderMap) -> String {
    let given = headers.get("x-request-id").and_then(|id| id.to_str().ok());
    let is_sane = |id: &&str| {
        (1..=128).contains(&id.len())
            && id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
    };
    given
        .filter(is_sane)
        .map_or_else(|| new_id("req"), str::to_owned)
}

/// The caller, if he may come in.
pub(super) fn recognise(
    app: &App,
    headers: &HeaderMap,
    request_id: &str,
) -> Result<Caller, ApiError> {
    let given = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
    });
    let pass = app.keyring.recognise(given)?;
    Ok(Caller {
        owner: pass.owner().clone(),
        pass,
        dialect: dialect(app, headers)?,
        request_id: request_id.to_owned(),
        wants_vendor_events: headers.get("haft-events").is_some_and(|value| value == "1"),
        watch: RequestWatch::default(),
    })
}

fn dialect(app: &App, headers: &HeaderMap) -> Result<Dialect, ApiError> {
    if let Some(wanted) = headers.get("haft-dialect") {
        let known = wanted.to_str().ok().and_then(Dialect::by_name);
        return known.ok_or_else(|| {
            ApiError::new(
                ErrorCode::InvalidValue,
                "the header `Haft-Dialect` is neither `open-responses` nor `openai`",
            )
        });
    }
    Ok(match app.options.dialect {
        DialectChoice::Auto => Dialect::of_client(headers),
        DialectChoice::OpenResponses => Dialect::OpenResponses,
        DialectChoice::OpenAi => Dialect::OpenAi,
    })
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| ApiError::new(ErrorCode::ServerError, "the request has no caller"))
    }
}

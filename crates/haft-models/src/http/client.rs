//! Pools of connections.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use haft_core::{ModelError, ModelErrorKind};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, redirect};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;

use super::failure::refused;
use super::{Body, Endpoint, Forwarded};
use crate::lift::not_an_answer;

/// How long each wait may take, and how much may come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until there is a connection. Fixed for a [`Http`] when it is made.
    pub connect: Duration,
    /// From the request to the first sign of an answer. A model that answers in one piece sends
    /// nothing before it has finished.
    pub header: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
    /// How many bytes a whole answer may have.
    pub max_body_bytes: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            header: Duration::from_mins(5),
            idle: Duration::from_mins(2),
            max_body_bytes: 256 * 1024 * 1024,
        }
    }
}

/// Connections to providers, kept open for the next request. Clones share them.
///
/// Certificates are checked against the platform's own; nothing is installed for the process. An
/// address that begins with `http://` never touches TLS, and one on this machine no proxy.
#[derive(Clone, Default)]
pub struct Http(Arc<Pools>);

#[derive(Default)]
struct Pools {
    connect: Option<Duration>,
    local: OnceLock<Result<Client, String>>,
    plain: OnceLock<Result<Client, String>>,
    secure: OnceLock<Result<Client, String>>,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Http")
    }
}

impl Http {
    /// Connections that are given so long to come about.
    pub fn new(connect: Duration) -> Self {
        Self(Arc::new(Pools {
            connect: Some(connect),
            ..Pools::default()
        }))
    }

    /// Sends `body` to `path` below the endpoint. An answer that is no success is an error.
    pub async fn post(
        &self,
        endpoint: &Endpoint,
        path: &str,
        body: Bytes,
        accept: &'static str,
        timeouts: &Timeouts,
    ) -> Result<Body, ModelError> {
        let request = self.client(endpoint)?.post(endpoint.url(path)).body(body);
        let request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let answer = exchange(endpoint, path, request, accept, timeouts).await?;
        succeeded(answer, endpoint, timeouts).await
    }

    /// Sends `body` to `path` below the endpoint and takes any answer, so that it can be passed on.
    /// Only one that points elsewhere is an error, as nobody further on could follow it, and a page
    /// of HTML that calls itself a success.
    pub async fn forward(
        &self,
        endpoint: &Endpoint,
        path: &str,
        body: Bytes,
        accept: &'static str,
        timeouts: &Timeouts,
    ) -> Result<Forwarded, ModelError> {
        let request = self.client(endpoint)?.post(endpoint.url(path)).body(body);
        let request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let answer = exchange(endpoint, path, request, accept, timeouts).await?;
        if answer.status().is_redirection() {
            return Err(refused(answer, timeouts, &endpoint.redactor()).await);
        }
        if answer.status().is_success() && is_page(&answer) {
            return Err(not_an_answer("text/html"));
        }
        Ok(Forwarded::of(answer, *timeouts, endpoint.redactor()).await)
    }

    /// Asks for what is at `path` below the endpoint. An answer that is no success is an error.
    pub async fn get(
        &self,
        endpoint: &Endpoint,
        path: &str,
        timeouts: &Timeouts,
    ) -> Result<Body, ModelError> {
        self.query(endpoint, path, &[], "application/json", timeouts)
            .await
    }

    /// The same with names and values behind the `?`, for an answer of this type.
    pub async fn query(
        &self,
        endpoint: &Endpoint,
        path: &str,
        parameters: &[(&str, &str)],
        accept: &'static str,
        timeouts: &Timeouts,
    ) -> Result<Body, ModelError> {
        let mut url = endpoint.url(path);
        if !parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(parameters);
        }
        let request = self.client(endpoint)?.get(url);
        let answer = exchange(endpoint, path, request, accept, timeouts).await?;
        succeeded(answer, endpoint, timeouts).await
    }

    /// Removes what is at `path` below the endpoint. An answer that is no success is an error.
    pub async fn delete(
        &self,
        endpoint: &Endpoint,
        path: &str,
        timeouts: &Timeouts,
    ) -> Result<Body, ModelError> {
        let request = self.client(endpoint)?.delete(endpoint.url(path));
        let answer = exchange(endpoint, path, request, "application/json", timeouts).await?;
        succeeded(answer, endpoint, timeouts).await
    }

    fn client(&self, endpoint: &Endpoint) -> Result<&Client, ModelError> {
        let pools = &*self.0;
        let (pool, kind) = match (endpoint.is_secure(), endpoint.is_local()) {
            (true, _) => (&pools.secure, Kind::Secure),
            (false, true) => (&pools.local, Kind::Local),
            (false, false) => (&pools.plain, Kind::Plain),
        };
        let connect = pools.connect.unwrap_or(Timeouts::default().connect);
        pool.get_or_init(|| build(kind, connect))
            .as_ref()
            .map_err(|reason| ModelError::new(ModelErrorKind::Unreachable, reason))
    }
}

/// Sends a request with the endpoint's headers and waits until an answer begins.
async fn exchange(
    endpoint: &Endpoint,
    path: &str,
    request: RequestBuilder,
    accept: &'static str,
    timeouts: &Timeouts,
) -> Result<Response, ModelError> {
    tracing::trace!(base = %endpoint.base(), path, "request to a model");
    let request = request
        .headers(endpoint.headers().clone())
        .header(ACCEPT, HeaderValue::from_static(accept));
    let response = match tokio::time::timeout(timeouts.header, request.send()).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(endpoint.redactor().clean_error(transport_error(error))),
        Err(_) => return Err(too_slow("no answer began", timeouts.header)),
    };
    let status = response.status().as_u16();
    tracing::trace!(path, status, "answer of a model");
    Ok(response)
}

fn is_page(answer: &Response) -> bool {
    let kind = answer.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or("");
    kind.trim_start()
        .to_ascii_lowercase()
        .starts_with("text/html")
}

/// The body of an answer; without success it is an error.
async fn succeeded(
    answer: Response,
    endpoint: &Endpoint,
    timeouts: &Timeouts,
) -> Result<Body, ModelError> {
    if answer.status().is_success() {
        Ok(Body::new(answer, *timeouts, endpoint.redactor()))
    } else {
        Err(refused(answer, timeouts, &endpoint.redactor()).await)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Local,
    Plain,
    Secure,
}

fn build(kind: Kind, connect: Duration) -> Result<Client, String> {
    let tls = tls(kind).map_err(|error| format!("TLS cannot be set up: {error}"))?;
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(connect)
        .redirect(redirect::Policy::custom(follow))
        .user_agent(concat!("haft/", env!("CARGO_PKG_VERSION")));
    if kind == Kind::Local {
        builder = builder.no_proxy();
    }
    builder
        .build()
        .map_err(|error| format!("no HTTP client can be made: {error}"))
}

fn tls(kind: Kind) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(match kind {
        Kind::Secure => builder.with_platform_verifier()?.with_no_client_auth(),
        // Trusts nobody: a plain address needs no certificates, and loading them takes time.
        Kind::Local | Kind::Plain => builder
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth(),
    })
}

/// Follows only what repeats the POST at the same origin; keys must not travel further.
fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let keeps_method = matches!(attempt.status().as_u16(), 307 | 308);
    let previous = attempt.previous();
    let same_origin = previous
        .first()
        .is_some_and(|first| first.origin() == attempt.url().origin());
    if keeps_method && same_origin && previous.len() <= 3 {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

pub(super) fn too_slow(what: &str, limit: Duration) -> ModelError {
    ModelError::new(ModelErrorKind::Timeout, format!("{what} within {limit:?}"))
}

/// What went wrong on the way, without the address: it may hold a key.
pub(super) fn transport_error(error: reqwest::Error) -> ModelError {
    // Where to, without path and query: those may hold secrets.
    let origin = error.url().map(|url| url.origin().ascii_serialization());
    let error = error.without_url();
    let kind = if error.is_timeout() {
        ModelErrorKind::Timeout
    } else {
        // Nothing is decoded here, so what reqwest calls a failure to decode is a hang-up as well.
        ModelErrorKind::Unreachable
    };
    let mut words = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        let cause_words = cause.to_string();
        if !words.contains(&cause_words) {
            words.push_str(": ");
            words.push_str(&cause_words);
        }
        source = cause.source();
    }
    if let Some(origin) = origin {
        words = format!("{origin}: {words}");
    }
    ModelError::new(kind, words)
}

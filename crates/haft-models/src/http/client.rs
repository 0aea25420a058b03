//! Pools of connections.

use std::error::Error;
use std::fmt;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use haft_core::{ModelError, ModelErrorKind};
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, RequestBuilder, StatusCode, Url, redirect};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;

use super::answer::Answer;
use super::diagnosis::diagnosed;
use super::direct::{Direct, Letter};
use super::failure::refused;
use super::{Body, Endpoint, Forwarded};
use crate::lift::not_an_answer;

/// How long each wait may take, and how much may come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until there is a connection. Fixed for a [`Http`] when it is made.
    pub connect: Duration,
    /// From the request to the first sign of an answer. A model that answers in one piece sends
    /// nothing before it has finished, and is given four times as long.
    pub header: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
    /// How many bytes a whole answer may have.
    pub max_body_bytes: u64,
}

/// How much longer an answer in one piece may take to begin.
const WHOLE: u32 = 4;

impl Timeouts {
    /// For an answer of this type: one in pieces shows a sign when the model begins, every other when it
    /// has finished.
    fn for_answer(&self, accept: &str) -> Self {
        let header = match accept {
            "application/json" => self.header.saturating_mul(WHOLE),
            _ => self.header,
        };
        Self { header, ..*self }
    }
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
    direct: OnceLock<Arc<Direct>>,
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
        let answer = self.send(endpoint, path, body, accept, timeouts).await;
        let answered = async { succeeded(answer?, endpoint, timeouts).await }.await;
        answered.map_err(|error| diagnosed(error, endpoint, path))
    }

    /// Sends `body` to `path` below the endpoint and takes any answer, so that it can be passed on.
    /// Errors are: a redirect, which a client could not follow; a success whose body is an HTML page or empty; and a
    /// status that no client expects.
    pub async fn forward(
        &self,
        endpoint: &Endpoint,
        path: &str,
        body: Bytes,
        accept: &'static str,
        timeouts: &Timeouts,
    ) -> Result<Forwarded, ModelError> {
        let answer = self.send(endpoint, path, body, accept, timeouts).await;
        let answer = answer.map_err(|error| diagnosed(error, endpoint, path))?;
        if answer.status.is_redirection() {
            let error = refused(answer, timeouts, &endpoint.redactor()).await;
            return Err(diagnosed(error, endpoint, path));
        }
        if answer.status.is_success() && is_page(&answer) {
            return Err(not_an_answer("text/html"));
        }
        let is_empty = answer.status == StatusCode::NO_CONTENT
            || answer.status.is_success() && answer.header(CONTENT_LENGTH) == Some("0");
        if answer.status.is_informational() || is_empty {
            let words = format!("the answer is empty (status {})", answer.status.as_u16());
            return Err(ModelError::new(ModelErrorKind::Protocol, words));
        }
        // Partial content, a reset form or a number that HTTP does not define: no client of Chat
        // Completions knows what to do with it.
        let status = answer.status.as_u16();
        if !matches!(status, 200..=203 | 400..=599) {
            let words = "its status is neither that of an answer nor of an error";
            return Err(ModelError::new(ModelErrorKind::Protocol, words).with_status(status));
        }
        let answer = Forwarded::of(answer, *timeouts, endpoint.redactor()).await;
        Ok(answer.map_failure(|error| diagnosed(error, endpoint, path)))
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

    /// Sends a body and waits until an answer begins.
    async fn send(
        &self,
        endpoint: &Endpoint,
        path: &str,
        body: Bytes,
        accept: &'static str,
        timeouts: &Timeouts,
    ) -> Result<Answer, ModelError> {
        let timeouts = &timeouts.for_answer(accept);
        if let Some(direct) = self.direct(endpoint) {
            let letter = Letter {
                headers: endpoint.headers(),
                accept,
            };
            let sent = pin!(direct.post(endpoint.url(path), letter, body));
            return begun(endpoint, path, timeouts, sent).await;
        }
        let request = self.client(endpoint)?.post(endpoint.url(path)).body(body);
        let request = request.header(CONTENT_TYPE, JSON);
        exchange(endpoint, path, request, accept, timeouts).await
    }

    /// Whether nobody stands between here and the endpoint: neither TLS nor a proxy.
    pub(super) fn is_direct(endpoint: &Endpoint) -> bool {
        !endpoint.is_secure() && (endpoint.is_local() || !has_proxy())
    }

    /// The connections for such an endpoint.
    fn direct(&self, endpoint: &Endpoint) -> Option<&Arc<Direct>> {
        let new = || Arc::new(Direct::new(self.connect_timeout()));
        Self::is_direct(endpoint).then(|| self.0.direct.get_or_init(new))
    }

    fn connect_timeout(&self) -> Duration {
        self.0.connect.unwrap_or(Timeouts::default().connect)
    }

    fn client(&self, endpoint: &Endpoint) -> Result<&Client, ModelError> {
        let pools = &*self.0;
        let (pool, kind) = match (endpoint.is_secure(), endpoint.is_local()) {
            (true, _) => (&pools.secure, Kind::Secure),
            (false, true) => (&pools.local, Kind::Local),
            (false, false) => (&pools.plain, Kind::Plain),
        };
        pool.get_or_init(|| build(kind, self.connect_timeout()))
            .as_ref()
            .map_err(|reason| ModelError::new(ModelErrorKind::Unreachable, reason))
    }
}

/// What every body is.
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Who asks.
pub(super) const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("haft/", env!("CARGO_PKG_VERSION")));

/// Whether plain addresses are reached through a proxy, by the variables that the client goes by.
fn has_proxy() -> bool {
    static HAS_PROXY: OnceLock<bool> = OnceLock::new();
    *HAS_PROXY.get_or_init(|| {
        let names = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        names.into_iter().any(is_set)
    })
}

/// Sends a request with the endpoint's headers and waits until an answer begins.
async fn exchange(
    endpoint: &Endpoint,
    path: &str,
    request: RequestBuilder,
    accept: &'static str,
    timeouts: &Timeouts,
) -> Result<Answer, ModelError> {
    let request = request
        .headers(endpoint.headers().clone())
        .header(ACCEPT, HeaderValue::from_static(accept));
    let sent = pin!(async {
        let response = request.send().await.map_err(transport_error)?;
        Ok(Answer::from(response))
    });
    begun(endpoint, path, timeouts, sent).await
}

/// Waits until an answer begins.
async fn begun(
    endpoint: &Endpoint,
    path: &str,
    timeouts: &Timeouts,
    sent: Pin<&mut impl Future<Output = Result<Answer, ModelError>>>,
) -> Result<Answer, ModelError> {
    tracing::trace!(base = %endpoint.base(), path, "request to a model");
    let answer = match tokio::time::timeout(timeouts.header, sent).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Err(endpoint.redactor().clean_error(error)),
        Err(_) => return Err(too_slow("no answer began", timeouts.header)),
    };
    let status = answer.status.as_u16();
    tracing::trace!(path, status, "answer of a model");
    Ok(answer)
}

fn is_page(answer: &Answer) -> bool {
    let kind = answer.content_type().to_ascii_lowercase();
    kind.starts_with("text/html")
}

/// The body of an answer; without success it is an error.
async fn succeeded(
    answer: Answer,
    endpoint: &Endpoint,
    timeouts: &Timeouts,
) -> Result<Body, ModelError> {
    if answer.status.is_success() {
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
        .user_agent(AGENT);
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

/// How often a redirect is followed.
pub(super) const MAX_REDIRECTS: usize = 3;

/// Whether a redirect is followed: only what repeats the POST at the same origin; keys must not
/// travel further.
pub(super) fn may_follow(status: StatusCode, from: &Url, to: &Url) -> bool {
    let names_somebody = !to.username().is_empty() || to.password().is_some();
    matches!(status.as_u16(), 307 | 308) && from.origin() == to.origin() && !names_somebody
}

fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let previous = attempt.previous();
    let may_follow = previous
        .first()
        .is_some_and(|first| may_follow(attempt.status(), first, attempt.url()));
    if may_follow && previous.len() <= MAX_REDIRECTS {
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
    let words = chained(&error);
    let words = match origin {
        Some(origin) => format!("{origin}: {words}"),
        None => words,
    };
    ModelError::new(kind, words)
}

/// An error with everything that it came from.
pub(super) fn chained(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_words = cause.to_string();
        if !words.contains(&cause_words) {
            words.push_str(": ");
            words.push_str(&cause_words);
        }
        source = cause.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_place_is_gone_on_to_and_nobody_may_be_named_there() {
        let from = Url::parse("http://host:1/v1/chat").unwrap();
        let may = |status: u16, to: &str| {
            let status = StatusCode::from_u16(status).unwrap();
            may_follow(status, &from, &Url::parse(to).unwrap())
        };
        assert!(may(307, "http://host:1/v2") && may(308, "http://host:1/v1/chat"));
        assert!(!may(302, "http://host:1/v2"));
        for elsewhere in [
            "http://host:2/v2",
            "https://host:1/v2",
            "http://other:1/v2",
            "http://u1@host:1/v2",
            "http://:word@host:1/v2",
        ] {
            assert!(!may(307, elsewhere), "{elsewhere}");
        }
    }
}

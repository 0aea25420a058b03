//! Requests to one origin.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response, Url, redirect};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;

use super::failure::{challenge, on_the_way};
use crate::error::Cause;
use crate::oauth::{Authority, Refusal};
use crate::secret::Secret;
use crate::settings::HttpSettings;

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 3;

/// How often a request is sent again with another token.
const RENEWALS: usize = 2;

/// How long connections are kept for the next request, and how many.
const POOL_IDLE: Duration = Duration::from_secs(90);
const POOL_SIZE: usize = 8;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// How much of an answer that is no success is read.
const REFUSAL_BYTES: usize = 64 * 1024;

/// How addresses are reached.
#[derive(Debug, Clone, Default)]
pub struct HttpOptions {
    /// The only addresses that the server's host may have: checked by whoever fills this in, and
    /// not looked up again. A proxy is not used then. Without them the host is looked up.
    pub pinned: Option<Vec<SocketAddr>>,
}

/// Connections to one origin, with what is sent along.
#[derive(Clone)]
pub(crate) struct HttpClient {
    client: Client,
    home: Arc<Url>,
    headers: HeaderMap,
    authority: Option<Arc<Authority>>,
}

impl HttpClient {
    pub(crate) fn new(
        settings: &HttpSettings,
        options: &HttpOptions,
        authority: Option<Arc<Authority>>,
    ) -> Result<Self, Cause> {
        let url = &settings.url;
        let tls = tls(url.scheme() == "https");
        let tls = tls.map_err(|error| Cause::Settings(format!("TLS cannot be set up: {error}")))?;
        let mut builder = Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(redirect::Policy::custom(follow))
            .connect_timeout(CONNECT)
            .referer(false)
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(POOL_SIZE)
            .user_agent(concat!("haft/", env!("CARGO_PKG_VERSION")));
        let host = url.host_str().unwrap_or_default();
        if let Some(pinned) = &options.pinned {
            builder = builder.resolve_to_addrs(host, pinned);
        }
        if options.pinned.is_some() || is_local(host) {
            builder = builder.no_proxy();
        }
        let client = builder.build();
        let client = client
            .map_err(|error| Cause::Settings(format!("no HTTP client can be made: {error}")))?;
        Ok(Self {
            client,
            home: Arc::new(url.clone()),
            headers: headers(settings)?,
            authority,
        })
    }

    /// A request to the configured address.
    pub(crate) fn home(&self, method: Method) -> RequestBuilder {
        self.client
            .request(method, Url::clone(&self.home))
            .headers(self.headers.clone())
    }

    /// A request to another address of the same origin.
    pub(crate) fn at(&self, method: Method, url: Url) -> Result<RequestBuilder, Cause> {
        if url.origin() == self.home.origin() {
            return Ok(self
                .client
                .request(method, url)
                .headers(self.headers.clone()));
        }
        let origin = url.origin().ascii_serialization();
        Err(Cause::Unexpected(format!(
            "the server points to another origin, `{origin}`, which is not followed"
        )))
    }

    /// Sends a request and waits until an answer begins. Where a token is refused and another one can
    /// be had without asking anybody, the request is sent again: it was refused, so that nothing has
    /// happened.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, Cause> {
        let Some(authority) = &self.authority else {
            return sent(request).await;
        };
        let mut next = Some(request);
        let mut renewals = 0;
        while let Some(request) = next {
            next = request.try_clone().filter(|_| renewals < RENEWALS);
            let token = authority.token().await?;
            let response = sent(with_token(request, token.as_ref())?).await?;
            let status = response.status().as_u16();
            if next.is_none() || !matches!(status, 401 | 403) {
                return Ok(response);
            }
            let challenge = challenge(response.headers());
            let refusal = Refusal { status, challenge };
            // Rare and large.
            Box::pin(authority.renew(token.as_ref(), refusal)).await?;
            renewals += 1;
        }
        Err(Cause::Authorization("no token was good enough".into()))
    }
}

fn with_token(request: RequestBuilder, token: Option<&Secret>) -> Result<RequestBuilder, Cause> {
    let Some(token) = token else {
        return Ok(request);
    };
    let value = HeaderValue::try_from(format!("Bearer {}", token.expose()));
    let mut value =
        value.map_err(|_| Cause::Authorization("the token cannot be sent as a header".into()))?;
    value.set_sensitive(true);
    Ok(request.header(AUTHORIZATION, value))
}

async fn sent(request: RequestBuilder) -> Result<Response, Cause> {
    let response = request.send().await.map_err(on_the_way)?;
    if response.status().is_redirection() {
        let status = response.status().as_u16();
        return Err(Cause::Status {
            status,
            detail: ": only redirects 307 and 308 within an origin are followed".into(),
        });
    }
    Ok(response)
}

/// The body of an answer, as far as the limit goes.
pub(crate) async fn body(response: Response, limit: usize) -> Result<Vec<u8>, Cause> {
    let announced = response.content_length().unwrap_or(0);
    let too_large = |bytes: u64| Cause::TooLarge {
        bytes,
        limit: limit as u64,
    };
    if announced > limit as u64 {
        return Err(too_large(announced));
    }
    let mut whole = Vec::new();
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece: Bytes = piece.map_err(on_the_way)?;
        if whole.len() + piece.len() > limit {
            return Err(too_large((whole.len() + piece.len()) as u64));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole)
}

/// The beginning of the body of an answer that is no success.
pub(crate) async fn refusal_body(response: Response) -> Vec<u8> {
    let mut begin = Vec::new();
    let mut pieces = response.bytes_stream();
    while let Some(Ok(piece)) = pieces.next().await {
        let room = REFUSAL_BYTES - begin.len();
        begin.extend_from_slice(&piece[..piece.len().min(room)]);
        if begin.len() == REFUSAL_BYTES {
            break;
        }
    }
    begin
}

fn headers(settings: &HttpSettings) -> Result<HeaderMap, Cause> {
    let mut headers = HeaderMap::new();
    let illegal =
        |name: &str| Cause::Settings(format!("the header `{name}` cannot be sent: change it"));
    for (name, value) in &settings.headers {
        let key = HeaderName::try_from(name).map_err(|_| illegal(name))?;
        let mut value = HeaderValue::try_from(value.expose()).map_err(|_| illegal(name))?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    if let Some(bearer) = &settings.bearer {
        let value = HeaderValue::try_from(format!("Bearer {}", bearer.expose()));
        let mut value = value.map_err(|_| illegal("Authorization"))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}

pub(crate) fn tls(is_secure: bool) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(if is_secure {
        builder.with_platform_verifier()?.with_no_client_auth()
    } else {
        // Trusts nobody: a plain address needs no certificates, and loading them takes time.
        builder
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth()
    })
}

/// Follows only what repeats the request at the same origin: tokens must not travel further.
fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let keeps_method = matches!(attempt.status().as_u16(), 307 | 308);
    let previous = attempt.previous();
    let is_same_origin = previous
        .first()
        .is_some_and(|first| first.origin() == attempt.url().origin());
    if keeps_method && is_same_origin && previous.len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

pub(crate) fn is_local(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let by_number = |address: std::net::IpAddr| address.is_loopback();
    host == "localhost" || host.ends_with(".localhost") || bare.parse().is_ok_and(by_number)
}

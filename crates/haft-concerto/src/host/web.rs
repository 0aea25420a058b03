//! `std::http` (§12): requests of programs, to hosts that they may reach.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::header::{
    ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use reqwest::{Client, Method, Response, Url, redirect};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;

use super::Setup;
use crate::value::{Map, Value};
use crate::vm::HttpRequest;

/// How long a request may take, with its answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How many redirects are followed.
const REDIRECTS: usize = 5;

/// How large an answer may be.
const LARGEST: usize = 16 << 20;

/// Connections for programs, made when the first is needed.
#[derive(Default)]
pub(super) struct Web {
    far: OnceLock<Result<Client, String>>,
    /// For this machine, which no proxy lies before.
    near: OnceLock<Result<Client, String>>,
}

impl Web {
    /// Sends a request and gives a Result.
    pub(super) async fn send(&self, setup: &Setup, request: &HttpRequest) -> Value {
        let sent = tokio::time::timeout(TIMEOUT, self.sent(setup, request)).await;
        Value::result(match sent {
            Ok(sent) => sent,
            Err(_) => Err(format!(
                "{} {}: no answer within {}s",
                request.method,
                shown(&request.url),
                TIMEOUT.as_secs()
            )),
        })
    }

    fn client(&self, url: &Url) -> Result<&Client, String> {
        let is_near = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        let client = if is_near {
            self.near.get_or_init(|| client(Trust::Nobody))
        } else {
            self.far.get_or_init(|| client(Trust::Platform))
        };
        client.as_ref().map_err(Clone::clone)
    }

    async fn sent(&self, setup: &Setup, request: &HttpRequest) -> Result<Value, String> {
        let mut url = Url::parse(&request.url)
            .map_err(|error| format!("'{}' is no address: {error}", shown(&request.url)))?;
        let mut method = Method::from_bytes(request.method.as_bytes())
            .map_err(|_| format!("'{}' is no HTTP method", request.method))?;
        let mut headers = headers(request)?;
        let mut body = request.body.clone();
        for _ in 0..=REDIRECTS {
            allowed(setup, &url)?;
            let client = self.client(&url)?;
            let mut sending = client
                .request(method.clone(), url.clone())
                .headers(headers.clone());
            if let Some(body) = &body {
                sending = sending.body(body.clone());
            }
            let answer = sending.send().await;
            let answer = answer.map_err(|error| failed(&request.url, &error))?;
            let Some(next) = elsewhere(&answer, &url) else {
                return read(answer).await;
            };
            if next.origin() != url.origin() {
                // What the program said to the first one, a key perhaps, is not for others.
                headers = for_others(&headers);
            }
            let status = answer.status().as_u16();
            if status == 303 || matches!(status, 301 | 302) && method == Method::POST {
                method = Method::GET;
                body = None;
                headers.remove(CONTENT_TYPE);
            }
            url = next;
        }
        let url = shown(&request.url);
        Err(format!("{url}: more than {REDIRECTS} redirects"))
    }
}

/// Whether a host may be asked; redirects lead anywhere.
pub(super) fn allowed(setup: &Setup, url: &Url) -> Result<(), String> {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!(
            "'{}' is not an http or https address",
            shown(url.as_str())
        ));
    }
    setup.permissions.may_ask(host)
}

fn headers(request: &HttpRequest) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    if request.body.is_some() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    for (name, value) in &request.headers {
        let wrong = || format!("header '{name}' cannot be sent");
        let key = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
        let value = HeaderValue::try_from(value.as_str()).map_err(|_| wrong())?;
        headers.insert(key, value);
    }
    Ok(headers)
}

/// Headers that say nothing of who asks.
fn for_others(headers: &HeaderMap) -> HeaderMap {
    let kept = [ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, USER_AGENT];
    let kept = headers.iter().filter(|(name, _)| kept.contains(name));
    kept.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// An address as messages show it: without a name and a password in it.
fn shown(url: &str) -> String {
    match Url::parse(url) {
        Ok(mut url) if !url.username().is_empty() || url.password().is_some() => {
            // Addresses with names have hosts.
            let _ = url.set_username("").and_then(|()| url.set_password(None));
            url.to_string()
        }
        Ok(_) => url.to_owned(),
        Err(_) => match url.rsplit_once('@') {
            Some((_, rest)) => format!("…@{rest}"),
            None => url.to_owned(),
        },
    }
}

/// Where an answer points instead.
fn elsewhere(answer: &Response, from: &Url) -> Option<Url> {
    if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = answer.headers().get(reqwest::header::LOCATION)?;
    from.join(location.to_str().ok()?).ok()
}

async fn read(answer: Response) -> Result<Value, String> {
    let status = i64::from(answer.status().as_u16());
    let url = answer.url().to_string();
    let mut headers = Map::default();
    for (name, value) in answer.headers() {
        let value = String::from_utf8_lossy(value.as_bytes());
        headers.insert(name.as_str(), Value::from(&*value));
    }
    let mut bytes = Vec::new();
    let mut pieces = answer.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| failed(&url, &error))?;
        if bytes.len() + piece.len() > LARGEST {
            let url = shown(&url);
            return Err(format!("{url}: the answer is larger than {LARGEST} bytes"));
        }
        bytes.extend_from_slice(&piece);
    }
    let body = String::from_utf8_lossy(&bytes);
    Ok(Value::record(
        "HttpResponse",
        vec![
            ("status", Value::Int(status)),
            ("body", Value::from(&*body)),
            ("headers", Value::map(headers)),
        ],
    ))
}

/// The words of an error and its causes, without the address twice.
fn failed(url: &str, error: &reqwest::Error) -> String {
    let mut text = format!("{}: request failed", shown(url));
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// Whose certificates are believed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// Those that the system believes.
    Platform,
    /// Nobody's: this machine is asked, mostly without TLS, and the system may have none.
    Nobody,
}

fn client(trust: Trust) -> Result<Client, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = || {
        let builder =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        Ok::<_, rustls::Error>(match trust {
            Trust::Platform => builder.with_platform_verifier()?.with_no_client_auth(),
            Trust::Nobody => builder
                .with_root_certificates(rustls::RootCertStore::empty())
                .with_no_client_auth(),
        })
    };
    let tls = tls().map_err(|error| format!("TLS cannot be set up: {error}"))?;
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(redirect::Policy::none())
        .referer(false)
        .user_agent(concat!("haft/", env!("CARGO_PKG_VERSION")));
    if trust == Trust::Nobody {
        builder = builder.no_proxy();
    }
    builder
        .build()
        .map_err(|error| format!("no HTTP client can be made: {error}"))
}

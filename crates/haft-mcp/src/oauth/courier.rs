//! Carries the requests of an authorization: to addresses that the server may lead to, and with bounds.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Client, Method, Request, Response, StatusCode, Url, redirect};
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy,
    OAuthHttpRequest,
};

use serde_json::Value;

use crate::guard::{is_public, literal};
use crate::http::{body, is_local, on_the_way, tls};

/// How long one request may take, and how large its answer may be.
const LIMIT: Duration = Duration::from_secs(30);
const MAX_BODY_BYTES: usize = 1024 * 1024;

const MAX_REDIRECTS: usize = 3;

/// What a server may lead to: the public network, and its own neighbourhood. A server on the public
/// network does not get this machine to ask its neighbours, and one of the neighbours not to ask itself.
#[derive(Debug, Clone)]
struct Reach {
    server: Arc<[IpAddr]>,
}

/// Where an address is that is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    ThisMachine,
    OwnNetwork,
    /// Links, groups and whatever else: nobody's neighbourhood.
    Elsewhere,
}

fn place(address: IpAddr) -> Place {
    match address.to_canonical() {
        address if address.is_loopback() => Place::ThisMachine,
        IpAddr::V4(address) => match address.octets() {
            [10, ..] | [192, 168, ..] | [172, 16..=31, ..] | [100, 64..=127, ..] => {
                Place::OwnNetwork
            }
            _ => Place::Elsewhere,
        },
        IpAddr::V6(address) if address.is_unique_local() => Place::OwnNetwork,
        IpAddr::V6(_) => Place::Elsewhere,
    }
}

impl Reach {
    fn allows(&self, address: IpAddr) -> bool {
        let is_neighbour = |own: &IpAddr| {
            let here = place(address);
            !is_public(*own) && here != Place::Elsewhere && place(*own) == here
        };
        is_public(address) || self.server.contains(&address) || self.server.iter().any(is_neighbour)
    }
}

impl Resolve for Reach {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            if !found.iter().all(|address| reach.allows(address.ip())) {
                return Err(not_allowed(name.as_str()).into());
            }
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}

fn not_allowed(host: &str) -> String {
    format!("the server leads to `{host}`, which is not at a public address")
}

/// An answer as rmcp reads it.
type Answer = axum::http::Response<Vec<u8>>;

/// The way to authorization servers.
pub(super) struct Courier {
    client: Client,
    server: Url,
    reach: Reach,
    failure: Mutex<Option<String>>,
}

impl Courier {
    pub(super) async fn new(server: &Url) -> Result<Arc<Self>, String> {
        let host = server.host_str().unwrap_or_default();
        let addresses = match literal(server) {
            Some(address) => vec![address],
            // Behind a proxy it need not be known here; then only the public network is.
            None => match tokio::net::lookup_host((host, 0)).await {
                Ok(found) => found.map(|address| address.ip()).collect(),
                Err(_) => Vec::new(),
            },
        };
        let reach = Reach {
            server: addresses.into(),
        };
        let tls = tls(true).map_err(|error| format!("TLS cannot be set up: {error}"))?;
        let mut builder = Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(redirect::Policy::none())
            .dns_resolver(Arc::new(reach.clone()))
            .referer(false)
            .timeout(LIMIT)
            .user_agent(concat!("haft/", env!("CARGO_PKG_VERSION")));
        if is_local(host) {
            builder = builder.no_proxy();
        }
        let client = builder.build();
        let client = client.map_err(|error| format!("no HTTP client can be made: {error}"))?;
        Ok(Arc::new(Self {
            client,
            server: server.clone(),
            reach,
            failure: Mutex::default(),
        }))
    }

    /// Why the last request failed, if it did: rmcp does not always pass that on.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn check(&self, url: &Url) -> Result<(), String> {
        let origin = url.origin().ascii_serialization();
        let is_secure =
            url.scheme() == "https" || (url.scheme() == "http" && self.server.scheme() == "http");
        if !is_secure {
            return Err(format!(
                "the server leads to `{origin}`, which is not `https`"
            ));
        }
        match literal(url) {
            Some(address) if !self.reach.allows(address) => Err(not_allowed(&address.to_string())),
            _ => Ok(()),
        }
    }

    /// Asks the server without credentials: whether it rejects that, and the challenge that comes with it.
    pub(super) async fn challenge(&self) -> (bool, Option<String>) {
        let mut question = Request::new(Method::POST, self.server.clone());
        let headers = question.headers_mut();
        let both = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, both);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        *question.body_mut() = Some(ping.into());
        let Ok(answer) = self.client.execute(question).await else {
            return (true, None);
        };
        if answer.status() != StatusCode::UNAUTHORIZED {
            return (!answer.status().is_success(), None);
        }
        let challenge = answer.headers().get(WWW_AUTHENTICATE);
        let challenge = challenge.and_then(|it| it.to_str().ok());
        (true, challenge.map(str::to_owned))
    }

    /// Sends a form; gives the JSON that comes back.
    pub(super) async fn submit(&self, to: &str, form: &[(&str, &str)]) -> Result<Value, String> {
        let to = Url::parse(to).map_err(|error| format!("`token_endpoint`: {error}"))?;
        self.check(&to)?;
        // A query is written as a form is.
        let mut query = to.clone();
        query.query_pairs_mut().clear().extend_pairs(form);
        let request = self.client.post(to);
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let request = request.body(query.query().unwrap_or_default().to_owned());
        let answer = request
            .send()
            .await
            .map_err(|error| on_the_way(error).to_string())?;
        let answer = whole(answer).await?;
        let read: Result<Value, _> = serde_json::from_slice(answer.body());
        match read {
            Ok(read) if answer.status().is_success() => Ok(read),
            Ok(read) => {
                let error = read
                    .get("error")
                    .and_then(Value::as_str)
                    .unwrap_or("no reason");
                let more = read.get("error_description").and_then(Value::as_str);
                let more = more.map(|more| format!(": {more}")).unwrap_or_default();
                Err(format!("the authorization server refuses: {error}{more}"))
            }
            Err(_) => Err(format!(
                "HTTP status {} without JSON",
                answer.status().as_u16()
            )),
        }
    }

    async fn carry(&self, request: OAuthHttpRequest) -> Result<Answer, String> {
        let follows = request.redirect_policy == OAuthHttpRedirectPolicy::Follow;
        let mut request = Request::try_from(request.request).map_err(|error| error.to_string())?;
        for _ in 0..=MAX_REDIRECTS {
            self.check(request.url())?;
            let again = request.try_clone();
            let (method, url) = (request.method().clone(), request.url().clone());
            let response = self.client.execute(request).await;
            let response = response.map_err(|error| on_the_way(error).to_string())?;
            match (again, onward(&response, &method, &url)) {
                (Some(mut again), Some(onward)) if follows => {
                    *again.url_mut() = onward;
                    request = again;
                }
                _ => return whole(response).await,
            }
        }
        Err("too many redirects".into())
    }
}

/// Where an answer sends on to, if that is the same origin and the request stays what it is.
fn onward(response: &Response, method: &Method, url: &Url) -> Option<Url> {
    let keeps = match response.status().as_u16() {
        307 | 308 => true,
        301..=303 => *method == Method::GET,
        _ => false,
    };
    let to = response.headers().get(LOCATION)?.to_str().ok()?;
    let to = url.join(to).ok()?;
    (keeps && to.origin() == url.origin()).then_some(to)
}

async fn whole(response: Response) -> Result<Answer, String> {
    let (status, headers) = (response.status(), response.headers().clone());
    let bytes = body(response, MAX_BODY_BYTES).await;
    let mut answer = Answer::new(bytes.map_err(|cause| cause.to_string())?);
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    Ok(answer)
}

impl OAuthHttpClient for Courier {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            self.carry(request).await.map_err(|reason| {
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                *failure = Some(reason.clone());
                OAuthHttpClientError::from(reason)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(server: &[&str]) -> Reach {
        let server = server.iter().map(|it| it.parse().unwrap());
        Reach {
            server: server.collect(),
        }
    }

    #[test]
    fn a_server_leads_to_the_public_network_and_its_own_neighbourhood_only() {
        let allows = |server: &[&str], to: &str| reach(server).allows(to.parse().unwrap());
        for server in [&["8.8.8.8"][..], &["10.0.0.1"], &["127.0.0.1"], &[]] {
            assert!(allows(server, "1.1.1.1"), "{server:?}");
            assert!(!allows(server, "169.254.169.254"), "{server:?}");
            assert!(!allows(server, "fe80::1"), "{server:?}");
            assert!(!allows(server, "0.0.0.0"), "{server:?}");
        }
        for to in [
            "127.0.0.1",
            "::1",
            "10.0.0.1",
            "192.168.1.1",
            "::ffff:10.0.0.1",
            "fd00::1",
        ] {
            assert!(!allows(&["8.8.8.8"], to), "{to}");
        }
        assert!(allows(&["10.0.0.1"], "192.168.1.1"));
        assert!(!allows(&["10.0.0.1"], "127.0.0.1"));
        assert!(allows(&["127.0.0.1"], "::1"));
        assert!(!allows(&["127.0.0.1"], "10.0.0.1"));
        // Only itself.
        assert!(allows(&["169.254.1.1"], "169.254.1.1"));
        assert!(!allows(&["169.254.1.1"], "169.254.169.254"));
    }

    #[tokio::test]
    async fn a_secure_server_does_not_lead_to_an_insecure_place() {
        let courier = Courier::new(&Url::parse("https://93.184.215.14/mcp").unwrap())
            .await
            .unwrap();
        let check = |url: &str| courier.check(&Url::parse(url).unwrap());
        assert!(check("https://93.184.215.15/token").is_ok());
        assert!(check("http://93.184.215.14/token").is_err());
        assert!(check("https://127.0.0.1/token").is_err());
        assert!(check("https://0x7f.1/token").is_err());
        assert!(check("file:///etc/passwd").is_err());
    }
}
